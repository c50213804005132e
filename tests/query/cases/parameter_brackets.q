cluster.Function("a!b").Where((x) => x.cpu < 2).Count()
