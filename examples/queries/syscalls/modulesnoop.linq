// Kernel modules that are loaded and removed
//   fay trace -f modulesnoop --for 1m
from m in cluster.Syscall("*_module")
select new { m.time, m.pid, m.comm, m.function, m.Error, took = m.Duration }
