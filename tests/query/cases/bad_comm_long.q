from e in cluster.Function("libc!read") group e by e.comm into g where g.Key == "a name of seventeen" select new { g.Key, n = g.Count() }
