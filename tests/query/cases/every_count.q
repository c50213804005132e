cluster.Function("libc!malloc").Every(100).Max(x => x.Arg(0))
