cluster.Function("a!b").Count(x => x.tid == 99999999999999999999)
