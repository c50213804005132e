// Calls of a function, by thread
//   fay trace -f func-threads --comm mariadbd --for 10s
//   fay trace -f func-threads -- ls
param function = "libc!malloc"
from f in cluster.Function("$function")
group f by new { f.pid, f.tid, f.comm } into g
orderby g.Count() descending
select new { g.Key, calls = g.Count() }
take 20
