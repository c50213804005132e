cluster.Function("libc!read").GroupBy(x => x.tid).Tumbling(1s).Select(g => g.Count())
