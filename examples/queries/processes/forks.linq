// Who makes processes and threads
//   fay trace -f forks --for 10s
from f in cluster.Tracepoint("sched:sched_process_fork")
let thread = f.parent.tgid == f.child.tgid
group f by new { f.parent.tgid, f.parent.comm, thread } into g
orderby g.Count() descending
select new { g.Key, made = g.Count() }
