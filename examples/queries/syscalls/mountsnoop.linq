// File systems that are mounted and unmounted
//   fay trace -f mountsnoop --for 1m
from m in cluster.Syscall("*mount")
select new { m.time, m.pid, m.comm, m.function, m.dev_name, m.dir_name, m.Error }
