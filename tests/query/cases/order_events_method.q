cluster.Function("a!b").OrderBy(x => x.tid)
