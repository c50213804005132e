cluster.Function("a!b").GroupBy(x => x.tid).GroupBy(g => g.Count()).Select(h => h.Sum(x => h.Count()))
