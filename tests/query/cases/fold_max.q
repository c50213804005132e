cluster.Function("libc!malloc").GroupBy(x => x.tid).Select(g => g.Sum(x => x.Arg(0))).Max()
