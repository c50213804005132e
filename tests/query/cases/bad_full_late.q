cluster.Function("a!b").GroupBy(m => m.tid).WhenFull(Drop).Select(g => g.Count())
