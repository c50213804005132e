// What threads wait for in the kernel
//   fay trace -f off-cpu --for 10s
//   fay trace -f off-cpu -- sleep 0.1
from s in cluster.Tracepoint("sched:sched_switch")
where s.prev.pid != 0 && s.prev_state != 0
group s by new { s.prev.comm, s.KernelStack } into g
orderby g.Count() descending
select new { g.Key, waits = g.Count() }
take 20
