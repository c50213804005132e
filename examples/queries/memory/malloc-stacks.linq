// Stacks from which most is allocated
//   fay trace -f malloc-stacks -- ls -l /etc
//   fay trace -f malloc-stacks --folded --comm redis-server --for 10s >malloc.folded
param function = "libc!malloc"
from m in cluster.Function("$function")
group m by m.Stack(16) into g
orderby g.Sum(x => x.Arg(0)) descending
select new { g.Key, bytes = g.Sum(x => x.Arg(0)), calls = g.Count() }
take 10
