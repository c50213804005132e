cluster.Function("libc!malloc").OrderBy(x => x)
