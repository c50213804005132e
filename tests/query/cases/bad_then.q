cluster.Function("libc!malloc").ThenBy(x => x.tid)
