cluster.Function("a!b").GroupBy(x => x.tid).GroupBy(g => g.Count()).Select(h => new { h.Key, f = h.First(x => x.Key) })
