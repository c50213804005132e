(from a in cluster.Function("a!b") join b in cluster.Return("a!b") on a.tid equals b.tid within 1s select a.tid).Every(10).Count()
