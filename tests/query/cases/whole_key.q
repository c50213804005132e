from io in cluster.Function("libc!read")
group io by new { io.comm, io.pid } into g select new { g.Key, n = g.Count() }
