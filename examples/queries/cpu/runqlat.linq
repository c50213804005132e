// Threads that waited longest for a processor
// In nanoseconds: the kernel adds up for each thread how long it was ready but did not run.
//   fay trace -f runqlat --for 10s
//   fay trace -f runqlat pid=1234 --for 10s
param pid = 0 // 0: all processes; -p would choose by the thread that leaves the processor
from s in cluster.Tracepoint("sched:sched_switch")
where s.next.pid != 0 && ($pid == 0 || s.next.tgid == $pid)
group s by new { s.next.pid, s.next.comm } into g
let waited = g.Max(x => x.next.sched_info.run_delay) - g.Min(x => x.next.sched_info.run_delay)
orderby waited descending
select new { g.Key, runs = g.Count(), waited }
take 20
