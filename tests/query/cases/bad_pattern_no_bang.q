cluster.Function("read").Count()
