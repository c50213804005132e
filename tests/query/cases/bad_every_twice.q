cluster.Function("a!b").Tumbling(1s).Every(10).Count()
