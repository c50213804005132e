cluster.Function("a!b").GroupBy(x => x.tid).KMeans(33, g => g.Key, g => 1, g => g.Count())
