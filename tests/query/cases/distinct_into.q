from x in cluster.Function("libc!malloc") select new { x.tid, size = x.Arg(0) / 1024 } into y distinct orderby y.size descending, y.tid select y take 5
