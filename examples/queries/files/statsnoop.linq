// Files whose status is asked for, and the errors
//   fay trace -f statsnoop --for 10s
from s in cluster.Syscall("*stat*")
where s.function != "rt_sigreturn"
select new { s.pid, s.comm, s.function, s.filename, s.Error }
