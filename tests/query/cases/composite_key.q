from io in cluster.Function("libc!read")
group io by new { io.tid, size = io.Arg(2) >> 10 } into g
select new { g.Key.tid, kb = g.Key.size, n = g.Count(x => x.cpu == 0), big = g.Max(x => x.Arg(2)) }
