// The system calls that are made most, by program
//   fay trace -f syscount --for 10s
//   fay trace -f syscount -- ls -l /etc
from s in cluster.Syscall("*")
group s by new { s.function, s.comm } into g
orderby g.Count() descending
select new { g.Key, calls = g.Count() }
take 20
