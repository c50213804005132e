cluster.Function("libc!read").Tumbling(1s).Select(x => x.Arg(2))
