from r in cluster.Return("libc!read")
group r by r.tid into g
select new { g.Key, p99 = g.Quantile(0.99, x => x.Duration), top = g.TopK(4, x => x.ReturnValue), any = g.Any(x => x.Failed), all = g.All(x => x.Duration < 1.5ms) }
