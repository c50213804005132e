from a in cluster.Function("a!f") join b in cluster.Function("a!g").GroupBy(x => x.tid) on a.tid equals b.Key within 1ms select a.tid
