cluster.Usdt("a!b:c").Sum(x => x.Duration)
