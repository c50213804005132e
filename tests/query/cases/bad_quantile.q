cluster.Function("libc!read").Quantile(1.5, x => x.Arg(2))
