cluster.Function("libc!read").Where(x => x.Arg(0) == 3).Average(x => x.Arg(2))
