cluster.Function("a!b").Every(1s).Count()
