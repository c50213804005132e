cluster.Function("a!b").Sum(x => 1.5)
