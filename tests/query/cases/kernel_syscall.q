from r in cluster.Syscall("read")
where !r.Failed
group r by new { r.comm, kilobytes = r.Arg(2)/1024 } into g
orderby g.Count() descending
select new { g.Key, calls = g.Count(), bytes = g.Sum(x => x.ReturnValue), latency = g.Histogram(x => x.Duration) }
