cluster.Function("a!b").Count(x => x.tid == 12ab)
