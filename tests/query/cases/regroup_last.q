from r in cluster.Return("redis-server!*")
group r by new { r.function, r.tid } into g
orderby g.Max(x => x.Duration)
group g by g.Key.function into h
group h by h.Count() into i
select new { threads = i.Key, slowest_thread = i.Last(x => x.Last(y => y.Key.tid)), first = i.First(x => x.Key) }
