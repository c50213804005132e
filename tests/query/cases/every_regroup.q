cluster.Function("libc!malloc").Every(0x40).GroupBy(x => x.tid).Select(g => g.Count()).Max()
