cluster.Function("libc!read").Where(x => x.Arg(0) = 3).Count()
