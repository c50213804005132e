// How often functions are called
//   fay trace -f funccount -- ls /
//   fay trace -f funccount function='redis-server!*' --comm redis-server --for 10s
param function = "libc!str*"
from f in cluster.Function("$function")
group f by f.function into g
orderby g.Count() descending
select new { function = g.Key, calls = g.Count() }
take 30
