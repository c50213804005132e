cluster.Function("a!b").Every(x => x.tid).Count()
