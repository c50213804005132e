(from a in cluster.Function("a!f") join b in cluster.Function("a!g") on a.tid equals b.tid within 1ms select new { a, b }).Tumbling(1s).GroupBy(p => p.a.cpu).Select(g => new { g.Key, n = g.Count() })
