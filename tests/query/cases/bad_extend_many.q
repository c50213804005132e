extend "functions.c" cluster.Function("a!b").Sum(x => many(x.tid))
