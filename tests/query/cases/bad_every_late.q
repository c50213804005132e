cluster.Function("a!b").GroupBy(x => x.tid).Every(10).Select(g => g.Count())
