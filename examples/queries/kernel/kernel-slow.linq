// Calls of kernel functions that take long
//   fay trace -f kernel-slow 'vfs_*' 50ms --for 10s
param function = "vfs_*"
param least = 10ms
from r in cluster.Return(kernel, "$function")
where r.Duration >= $least
select new { r.time, r.pid, r.comm, r.function, took = r.Duration }
