cluster.Function("libc!malloc").WhenFull(Overwrite).Every(10).Max(m => m.Arg(0))
