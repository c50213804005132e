cluster.Function("libc!read").Select(io => io.Arg(2)).Sum()
