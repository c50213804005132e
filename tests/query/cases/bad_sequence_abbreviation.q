cluster.Function("a!b").Avg(x => x.Arg(0))
