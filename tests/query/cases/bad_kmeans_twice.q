cluster.Function("a!b").GroupBy(x => x.tid).KMeans(2, g => g.Key, g => 1, g => g.Count()).KMeans(2, x => x.Vector, x => 1, x => x.Value)
