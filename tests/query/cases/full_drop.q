cluster.Function("libc!malloc").WhenFull(Drop).GroupBy(m => m.tid).Select(g => g.Count())
