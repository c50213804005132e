cluster.Function("a!b").Every(10).Select(x => x.tid)
