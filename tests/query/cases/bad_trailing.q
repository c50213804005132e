cluster.Function("a!b").Count() 5
