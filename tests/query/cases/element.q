from io in cluster.Function("libc!read")
group io.Arg(2) by io.tid into g select new { g.Key, total = g.Sum(), mean = g.Average() }
