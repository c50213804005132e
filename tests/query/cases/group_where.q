from io in cluster.Function("libc!read")
group io by io.tid into g let n = g.Where(x => x.Arg(2) > 0).Count() where g.Key != 0 select new { tid = g.Key, n, m = g.Select(x => x.Arg(2)).Where(v => v > 5).Max() }
