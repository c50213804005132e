// Soft interrupts, by kind and processor
// Kinds: 0 high, 1 timer, 2 net_tx, 3 net_rx, 4 block, 5 irq_poll, 6 tasklet, 7 sched, 8 hrtimer,
// 9 rcu.
//   fay trace -f softirqs --for 10s
from s in cluster.Tracepoint("irq:softirq_entry")
group s by new { s.vec_nr, s.cpu } into g
orderby g.Count() descending
select new { g.Key, times = g.Count() }
