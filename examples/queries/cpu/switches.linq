// Context switches in each second
//   fay trace -f switches --for 10s
from s in cluster.Tracepoint("sched:sched_switch").Tumbling(1s)
group s by 1 into g
select new { switches = g.Count(), forced = g.Count(x => x.preempt) }
