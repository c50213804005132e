cluster.Function("a!b").Count(x => 1 > 2)
