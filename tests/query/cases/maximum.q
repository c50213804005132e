cluster.Function("libc!read").Max(x => x.Arg(0) - 5)
