from a in cluster.Function("a!f") join b in cluster.Function("a!g") on a.tid equals a.tid within 1ms select a.tid
