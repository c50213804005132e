from f in cluster.Return("redis-server!call")
join r in cluster.Syscall("read") on f.tid equals r.tid within 10ms
where r.time >= f.time - f.Duration && r.time <= f.time && r.ReturnValue > 0
group r by f.ReturnValue into g
select new { g.Key, reads = g.Count(), bytes = g.Sum(x => x.ReturnValue), longest = g.Max(x => x.Duration) }
