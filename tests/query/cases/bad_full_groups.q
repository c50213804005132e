cluster.Function("a!b").WhenFull(Overwrite).GroupBy(m => m.tid).Select(g => g.Count())
