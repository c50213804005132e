from e in cluster.Function("libc!read") group e by e.UserStack into g orderby g.Key select new { g.Key, n = g.Count() }
