cluster.Function("libc!read").Quantile(0.5)
