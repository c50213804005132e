cluster.Function("a!b").GroupBy(x => x.comm).KMeans(2, g => g.Key)
