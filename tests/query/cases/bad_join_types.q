from a in cluster.Function("a!f") join b in cluster.Function("a!g") on a.tid equals b.comm within 1ms select a.tid
