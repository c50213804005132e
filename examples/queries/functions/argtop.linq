// The most frequent values of an argument
//   fay trace -f argtop -- ls -l /etc
param function = "libc!malloc"
param argument = 0 // 0 to 5
from f in cluster.Function("$function")
group f by f.Arg($argument) into g
orderby g.Count() descending
select new { argument = g.Key, calls = g.Count() }
take 20
