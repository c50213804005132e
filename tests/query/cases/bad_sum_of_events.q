cluster.Function("a!b").Sum()
