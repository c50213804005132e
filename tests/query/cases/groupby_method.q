cluster.Function("a!b").Select(x => new { x.tid, v = x.Arg(0) }).GroupBy(r => r.tid, r => r.v).Select(g => new { g.Key, s = g.Sum() })
