// Calls of functions in each second
//   fay trace -f funcrate --comm redis-server --for 10s
//   fay trace -f funcrate 'libc!*' -- du -s /usr/share/doc
param function = "libc!*"
from f in cluster.Function("$function").Tumbling(1s)
group f by f.function into g
orderby g.Count() descending
select new { function = g.Key, calls = g.Count() }
take 5
