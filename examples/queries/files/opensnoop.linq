// Files that are opened, by whom, with what result
//   fay trace -f opensnoop --for 10s
//   fay trace -f opensnoop -- ls /etc
from o in cluster.Syscall("open*")
select new { o.pid, o.comm, o.filename, fd = o.ReturnValue, o.Error }
