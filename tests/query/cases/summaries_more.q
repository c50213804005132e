from x in cluster.Function("libc!write")
group x by x.comm into g
select new { g.Key, sd = g.StdDev(x => x.Arg(2)), buffers = g.Where(x => x.Arg(2) >= 4KiB).DistinctCount(x => x.Arg(1)),
	first = g.First(x => x.time), last = g.Last(x => x.function), busy = g.Max(x => x.time) - g.Min(x => x.time) }
