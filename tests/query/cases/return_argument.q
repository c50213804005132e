from r in cluster.Return("libc!read") where r.Arg(0) == 3 && !r.Failed group r by r.Arg(2) / 1024 into g select new { g.Key, bytes = g.Sum(x => x.ReturnValue) }
