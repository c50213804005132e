from x in cluster.Function("libc!malloc") skip 2 take 3 select new { x.tid, size = x.Arg(0) }
