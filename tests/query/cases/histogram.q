cluster.Function("libc!read").Histogram(x => x.Arg(2))
