cluster.Function("a!b").Contains(x => true)
