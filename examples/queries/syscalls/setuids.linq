// Changes of the user that a program runs as
//   fay trace -f setuids --for 10s
from s in cluster.Syscall("set*uid")
select new { s.time, s.pid, s.comm, s.function, uid = s.Arg(0) & 0xffffffff, s.Error }
