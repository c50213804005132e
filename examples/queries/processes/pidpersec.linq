// Processes and threads made in each second
//   fay trace -f pidpersec --for 10s
cluster.Tracepoint("sched:sched_process_fork").Tumbling(1s).Count()
