from r in cluster.Return("libc!read").Where(r => r.Arg(0) != 0 && r.time < Now.AddMinutes(5)).Every(1000)
where r.ReturnValue > 0
group r by new { r.comm, large = r.ReturnValue >= 16KiB } into g
orderby g.Sum(x => x.ReturnValue) descending
select new { g.Key, n = g.Count(), bytes = g.Sum(x => x.ReturnValue), slow = g.Quantile(0.99, x => x.Duration), mean = 1.0 * g.Sum(x => x.ReturnValue) / g.Count() }
take 3
