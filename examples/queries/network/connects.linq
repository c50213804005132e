// Connections that programs make, and the errors
//   fay trace -f connects --for 10s
from c in cluster.Syscall("connect")
group c by new { c.pid, c.comm, c.Error } into g
orderby g.Count() descending
select new { g.Key, times = g.Count(), longest = g.Max(x => x.Duration) }
