from a in cluster.Function("a!f") join b in cluster.Function("a!g") on a.tid equals b.tid within 1ms into g join c in cluster.Function("a!h") on a.tid equals c.tid within 1ms select c
