from io in cluster.Function("libc!read")
group io by io.time into g select new { g.Key, n = g.Count() }
