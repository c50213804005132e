// Interrupts, by device and processor
//   fay trace -f interrupts --for 10s
from i in cluster.Tracepoint("irq:irq_handler_entry")
group i by new { i.irq, name = i.action.name, i.cpu } into g
orderby g.Count() descending
select new { g.Key, times = g.Count() }
