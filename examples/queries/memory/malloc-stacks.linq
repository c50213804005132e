// Stacks from which most is allocated
// 32 functions of a stack, the innermost; what is outside of them is left out.
//   fay trace -f malloc-stacks -- ls -l /etc
//   fay trace -f malloc-stacks --folded --comm redis-server --for 10s >malloc.folded
param function = "libc!malloc"
from m in cluster.Function("$function")
group m by m.Stack(32) into g
orderby g.Sum(x => x.Arg(0)) descending
select new { g.Key, bytes = g.Sum(x => x.Arg(0)), calls = g.Count() }
take 10
