from a in cluster.Function("a!f")
join b in cluster.Function("a!g") on a.tid equals b.tid within 1ms into g
where a.cpu > 2 && g.Count() == 0
select new { a.tid, a.cpu, n = g.Count(), bytes = g.Sum(x => x.Arg(2)) }
