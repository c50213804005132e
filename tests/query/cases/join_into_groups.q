from a in cluster.Function("a!f")
join b in cluster.Function("a!g") on a.tid equals b.tid within 1ms
join c in cluster.Function("a!h") on b.tid equals c.tid within 1ms into g
let n = g.Count(x => x.time > b.time)
group n by a.comm into h
select new { h.Key, pairs = h.Count(), most = h.Max() }
