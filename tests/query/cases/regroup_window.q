cluster.Function("libc!read").Tumbling(1s).GroupBy(x => x.Arg(0)).GroupBy(g => g.Count() / 10).Select(h => new { h.Key, files = h.Count() })
