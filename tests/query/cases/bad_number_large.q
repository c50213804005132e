cluster.Function("a!b").Count(x => x.tid == 9223372036854775808)
