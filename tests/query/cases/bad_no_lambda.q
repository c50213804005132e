cluster.Function("a!b").Where(true).Count()
