// Signals that are sent, by the kernel, too
//   fay trace -f signals --for 10s
from s in cluster.Tracepoint("signal:signal_generate")
group s by new { sender = s.comm, s.sig, target = s.task.comm } into g
orderby g.Count() descending
select new { g.Key, times = g.Count() }
