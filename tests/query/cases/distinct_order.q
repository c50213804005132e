cluster.Function("libc!malloc").Select(x => x.Arg(0)).Distinct().OrderByDescending(x => x).Skip(2).Take(5)
