cluster.Function("a!b").GroupBy(x => x.tid).Count()
