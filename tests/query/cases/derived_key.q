from io in cluster.Function("libc!read")
group io by io.Arg(2) / 1024 into g select new { bytes = g.Key * 1024, n = g.Count() }
