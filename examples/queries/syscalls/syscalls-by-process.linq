// The processes that make the most system calls
//   fay trace -f syscalls-by-process --for 10s
from s in cluster.Syscall("*")
group s by new { s.pid, s.comm } into g
orderby g.Count() descending
select new { g.Key, calls = g.Count() }
take 20
