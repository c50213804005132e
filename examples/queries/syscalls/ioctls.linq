// Which ioctl commands programs use
//   fay trace -f ioctls --for 10s
//   fay trace -f ioctls -- stty -a
from i in cluster.Syscall("ioctl")
group i by new { i.comm, i.cmd, i.Error } into g
orderby g.Count() descending
select new { g.Key, times = g.Count() }
