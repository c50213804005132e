cluster.Timer(10).Count()
