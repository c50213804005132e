// Files that could not be opened, and why
//   fay trace -f opens-failed --for 10s
//   fay trace -f opens-failed -- cat /etc/hostname /nonexistent
from o in cluster.Syscall("open*")
where o.Failed
group o by new { o.comm, o.filename, o.Error } into g
orderby g.Count() descending
select new { g.Key, times = g.Count() }
