extend "functions.c" cluster.Function("a!b").Sum(x => halved(x.tid))
