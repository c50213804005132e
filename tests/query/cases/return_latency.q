from r in cluster.Return("redis-server!call")
group r by new { r.function, r.Failed } into g
select new { g.Key.function, g.Key.Failed, calls = g.Count(), latency = g.Histogram(x => x.Duration) }
