cluster.Function("a!b").Sum(x => bucket(x.tid, 3))
