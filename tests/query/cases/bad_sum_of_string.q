cluster.Function("a!b").Sum(x => x.comm)
