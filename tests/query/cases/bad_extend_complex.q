extend "functions.c" cluster.Function("a!b").Sum(x => whole(x.tid))
