from a in cluster.Function("a!f") join b in (from x in cluster.Function("a!g") join y in cluster.Function("a!h") on x.tid equals y.tid within 1ms select x) on a.tid equals b.tid within 1ms select b
