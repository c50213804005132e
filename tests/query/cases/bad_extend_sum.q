extend "functions.c" cluster.Function("a!b").Sum(x => sum(x.tid))
