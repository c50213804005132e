from e in cluster.Function("libc!malloc") group e by e.Caller into g select new { g.Key, n = g.Count() };
