from a in cluster.Function("libc!read")
join b in cluster.Function("libc!write") on a.tid equals b.tid within 1ms into g
let n = g.Count()
group n by a.cpu into h
group h by h.Key % 2 into i
select new { i.Key, first = i.First(x => x.Sum()), last = i.Last(x => x.First()) }
