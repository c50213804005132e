from r in cluster.Return("redis-server!*")
group r by r.function into g
let calls = g.Count()
where calls > 10 && g.Average(x => x.Duration) >= 1.5
orderby calls descending, g.Key
select new { g.Key, calls, share = g.Max(x => x.Duration) * 100 / g.Sum(x => x.Duration), mean = 1.0 * g.Sum(x => x.Duration) / calls }
take 10
