cluster.Function("a!b").GroupBy(x => x.tid).GroupBy(g => g.Average(x => x.cpu)).Select(h => h.Count())
