from r in cluster.Return("libc!read").Sliding(10s, 1s)
group r by r.comm into g
orderby g.Count() descending
select new { g.Key, n = g.Count(), p99 = g.Quantile(0.99, x => x.Duration) } take 3
