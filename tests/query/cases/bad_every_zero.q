cluster.Function("a!b").Every(0).Count()
