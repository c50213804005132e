from x in cluster.Function("libc!malloc") where 1.5 * x.Arg(0) > 3 select x.tid
