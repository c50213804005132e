from io in cluster.Function("a!b")
group io by io.Arg(0) / io.Arg(1) into g
select new { g.Key, r = g.Sum(x => x.Arg(2) % x.Arg(3)), q = g.Max(x => x.Arg(2) / -1), s = g.Sum(x => x.Arg(0) << x.cpu) }
