from io in cluster.Function("libc!read")
group io by io.Arg(2) > 4096 && io.cpu != 1 into g select new { big = g.Key, n = g.Count() }
