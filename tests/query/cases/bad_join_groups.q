from a in cluster.Function("a!f") group a by a.tid into g join b in cluster.Function("a!g") on g.Key equals b.tid within 1ms select b.tid
