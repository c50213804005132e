// How a system call's latency changes over time
//   fay trace -f syscall-heat-map --for 20s
//   fay trace -f syscall-heat-map call=fsync --comm postgres
param call = "read"
cluster.Syscall("$call").Tumbling(1s).Histogram(s => s.Duration)
