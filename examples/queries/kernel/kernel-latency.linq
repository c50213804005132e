// How long calls of a kernel function take
//   fay trace -f kernel-latency --for 10s
//   fay trace -f kernel-latency tcp_sendmsg --for 10s
param function = "vfs_read"
cluster.Return(kernel, "$function").Histogram(r => r.Duration)
