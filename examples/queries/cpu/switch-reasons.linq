// How threads leave the processor
// Forced: it would have gone on; else it waited for something.
//   fay trace -f switch-reasons --for 10s
from s in cluster.Tracepoint("sched:sched_switch")
where s.prev.pid != 0
let forced = s.prev_state == 0
group s by new { s.prev.comm, forced } into g
orderby g.Count() descending
select new { g.Key, times = g.Count() }
take 20
