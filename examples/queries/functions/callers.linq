// Who calls a function
// Of several functions one may go on in another by a jump: both have the first one's caller.
//   fay trace -f callers -- ls -l /etc
//   fay trace -f callers 'libc!write' --comm redis-server --for 10s
param function = "libc!malloc"
from f in cluster.Function("$function")
group f by new { f.function, caller = f.Caller } into g
orderby g.Count() descending
select new { g.Key, calls = g.Count() }
take 20
