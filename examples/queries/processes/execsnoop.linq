// Programs that are started, and by whom
//   fay trace -f execsnoop --for 10s
//   fay trace -f execsnoop --follow -- sh -c "ls / | wc -l"
from e in cluster.Tracepoint("sched:sched_process_exec")
select new { e.time, e.pid, parent = e.p.real_parent.comm, program = e.p.comm,
    file = e.bprm.filename }
