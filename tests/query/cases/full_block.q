cluster.Function("libc!malloc").WhenFull(Block).Select(m => m.tid)
