// Stacks that lead to a function
//   fay trace -f stackcount -- ls -l /etc
//   fay trace -f stackcount 'libc!write' --folded --comm redis-server --for 10s >write.folded
param function = "libc!malloc"
from f in cluster.Function("$function")
group f by f.Stack(32) into g
orderby g.Count() descending
select new { g.Key, calls = g.Count() }
take 10
