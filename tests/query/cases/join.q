from a in cluster.Function("redis-server!readQueryFromClient")
where a.cpu < 4
let client = a.Arg(0)
join b in cluster.Return("redis-server!call").Where(x => !x.Failed) on new { a.pid, a.tid } equals new { b.pid, b.tid } within 5ms
where b.time > a.time && b.Duration > 1us && a.comm.StartsWith("redis")
group new { a, b, apart = b.time - a.time } by client & 15 into g
orderby g.Count() descending
select new { client = g.Key, calls = g.Count(), apart = g.Max(x => x.apart), slow = g.Count(x => x.b.Duration > 1ms), ms = g.Sum(x => x.b.Duration / 1ms + x.a.cpu) }
take 10
