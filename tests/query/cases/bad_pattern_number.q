cluster.Function(5).Count()
