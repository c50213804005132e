// Large allocations, one by one
//   fay trace -f malloc-large --comm mariadbd
//   fay trace -f malloc-large least=4KiB -- ls -l /etc
param least = 64KiB
from m in cluster.Function("libc!malloc")
where m.Arg(0) >= $least
select new { m.time, m.pid, m.comm, bytes = m.Arg(0), m.Caller }
