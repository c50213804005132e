extend "functions.c" cluster.Function("a!b").GroupBy(x => x.tid).Select(g => bucket(g.Count(), 3))
