cluster.Function("libc!malloc").Distinct()
