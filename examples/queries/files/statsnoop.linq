// Files whose status is asked for, and the errors
//   fay trace -f statsnoop --for 10s
from s in cluster.Syscall("*stat*")
select new { s.pid, s.comm, s.function, s.filename, s.Error }
