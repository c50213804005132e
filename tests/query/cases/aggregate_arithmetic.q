from io in cluster.Function("libc!read")
group io by io.tid into g select new { x = g.Sum(y => y.cpu) / g.Count() }
