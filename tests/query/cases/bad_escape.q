cluster.Function("a\!b").Count()
