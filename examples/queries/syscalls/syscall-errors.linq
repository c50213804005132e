// System calls that fail, by error (errno)
//   fay trace -f syscall-errors --for 10s
//   fay trace -f syscall-errors -- ls /nonexistent
from s in cluster.Syscall("*")
where s.Failed
group s by new { s.comm, s.function, s.Error } into g
orderby g.Count() descending
select new { g.Key, times = g.Count() }
