cluster.Function("a!b").GroupBy(x => x.tid).GroupBy(g => g.Count()).GroupBy(h => h.Count() + h.Key).Select(i => i.Count()).Max()
