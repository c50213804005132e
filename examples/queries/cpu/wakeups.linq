// Who wakes whom
//   fay trace -f wakeups --for 10s
from w in cluster.Tracepoint("sched:sched_waking")
group w by new { waker = w.comm, woken = w.p.comm } into g
orderby g.Count() descending
select new { g.Key, times = g.Count() }
take 20
