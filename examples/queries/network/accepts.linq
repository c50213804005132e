// Connections that servers take
//   fay trace -f accepts --for 10s
from a in cluster.Syscall("accept*")
where !a.Failed
group a by new { a.pid, a.comm } into g
orderby g.Count() descending
select new { g.Key, connections = g.Count() }
