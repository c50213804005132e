from a in cluster.Function("a!f") join b in cluster.Function("a!g") on a.tid equals b.tid within 1ms into g select g.Key
