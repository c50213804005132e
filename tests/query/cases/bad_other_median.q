cluster.Return("libc!read").Median(r => r.Duration)
