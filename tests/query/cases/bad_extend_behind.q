extend "functions.c" cluster.Function("a!b").Sum(x => behind(x.tid))
