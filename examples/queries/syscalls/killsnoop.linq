// Signals that programs send, and to whom
//   fay trace -f killsnoop --for 10s
from k in cluster.Syscall("*kill")
select new { k.time, k.pid, k.comm, k.function, k.sig, to = k.Arg(0) << 32 >> 32, k.Error }
