// System calls a second, by kind
//   fay trace -f syscall-rate --for 10s
from s in cluster.Syscall("*").Tumbling(1s)
group s by s.function into g
orderby g.Count() descending
select new { call = g.Key, calls = g.Count() }
take 5
