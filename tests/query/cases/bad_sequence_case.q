cluster.Function("a!b").count()
