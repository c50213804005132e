// Processes that end, with exit status or signal
//   fay trace -f exitsnoop --for 10s
//   fay trace -f exitsnoop --follow -- sh -c "false; true"
from e in cluster.Tracepoint("sched:sched_process_exit")
where e.p.pid == e.p.tgid
select new { e.time, e.pid, e.comm, status = e.p.exit_code >> 8, signal = e.p.exit_code & 127,
    parent = e.p.real_parent.comm }
