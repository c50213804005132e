from a in cluster.Function("a!f") where a.time < Now.AddMinutes(5)
join b in cluster.Return("a!f") on a.tid equals b.tid within 1s
select new { a, b }
