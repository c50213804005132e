// Programs that sleep, and how long
//   fay trace -f naptime --for 10s
//   fay trace -f naptime -- sleep 0.1
from n in cluster.Syscall("*nanosleep")
select new { n.time, n.pid, n.comm, slept = n.Duration }
