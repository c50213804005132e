// Locks of the kernel that threads wait for
//   fay trace -f kernel-locks --for 10s
from c in cluster.Tracepoint("lock:contention_begin")
group c by new { c.comm, c.KernelStack } into g
orderby g.Count() descending
select new { g.Key, waits = g.Count() }
take 10
