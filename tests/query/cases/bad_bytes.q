cluster.Function("a!b").Count(x => x.tid == 1 ÿþ)
