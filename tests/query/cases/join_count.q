(from a in cluster.Function("a!f") join b in cluster.Function("a!g") on a.tid equals b.tid within 1ms where a.Arg(0) < b.Arg(0) select a).Count()
