cluster.Function("libc!read").Count(x => x.Arg(2) > 4 KiB)
