from io in cluster.Function("libc!read")
group io by io.function into g select new { f = g.Key, n = g.Count(), s = g.Sum(x => x.Arg(1)), lo = g.Min(x => x.Arg(1)), hi = g.Max(x => x.Arg(1)), mean = g.Average(x => x.Arg(1)), h = g.Histogram(x => x.Arg(1)) }
