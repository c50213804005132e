cluster.Return("libc!read").Sum(r => r.Arg(2))
