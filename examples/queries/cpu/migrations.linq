// Threads that move to another processor
//   fay trace -f migrations --for 10s
from m in cluster.Tracepoint("sched:sched_migrate_task")
group m by m.p.comm into g
orderby g.Count() descending
select new { program = g.Key, moves = g.Count() }
take 20
