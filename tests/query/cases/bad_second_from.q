from a in cluster.Function("a!f") from b in cluster.Function("a!g") select a.tid
