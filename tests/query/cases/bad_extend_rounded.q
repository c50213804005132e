extend "functions.c" cluster.Function("a!b").Sum(x => rounded(x.tid))
