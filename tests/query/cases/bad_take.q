cluster.Function("libc!malloc").Take(-1)
