cluster.Function("libc!read").TopK(x => x.Arg(2))
