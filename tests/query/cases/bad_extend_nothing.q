extend "functions.c" cluster.Function("a!b").Sum(x => nothing(x.tid))
