from r in cluster.Return("redis-server!*")
group r by new { r.function, r.tid } into g
let calls = g.Count()
where calls > 10
orderby calls descending
take 1000
group new { calls, slow = g.Max(x => x.Duration) } by g.Key.function into h
where h.Count() > 1
orderby h.Sum(x => x.calls) descending
select new { function = h.Key, threads = h.Count(), calls = h.Sum(x => x.calls), spread = h.Max(x => x.calls) - h.Min(x => x.calls), worst = h.Max(x => x.slow) }
take 5
