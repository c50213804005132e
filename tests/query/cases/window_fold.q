cluster.Function("libc!read").Tumbling(1min).GroupBy(x => x.tid).Select(g => g.Count()).Max()
