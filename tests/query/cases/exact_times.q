cluster.Function("a!b").Count(x => x.time >= Now.AddMilliseconds(-1) && x.time < Now.AddSeconds(0.25).AddHours(1))
