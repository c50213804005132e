cluster.Function("a!b").Sum(x => x.Arg(0) / (x.Arg(1) & 7) % x.Arg(2))
