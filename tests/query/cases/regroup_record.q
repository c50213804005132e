from r in cluster.Function("libc!read")
group r by r.tid into g
select new { g.Key, n = g.Count(), of = g.DistinctCount(x => x.Arg(0)) } into t
group t by t.n into h
select new { times = h.Key, threads = h.Count(), of = h.Histogram(x => x.of) }
