from a in cluster.Return("a!f") join b in cluster.Function("a!g") on a.tid equals b.tid within 1ms select b.Duration
