from a in cluster.Function("a!f")
join b in cluster.Function("a!g") on a.tid equals b.tid within 1ms
where b.time > a.time && b.cpu == 1
join c in cluster.Return("a!h") on new { b.pid, n = a.Arg(0) + b.Arg(0) } equals new { c.pid, n = c.ReturnValue } within 5ms
where c.time > b.time
group new { a, c } by c.Failed into g
select new { g.Key, n = g.Count(), latency = g.Average(x => x.c.time - x.a.time) }
