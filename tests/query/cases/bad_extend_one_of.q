extend "functions.c" cluster.Function("a!b").Sum(x => one_of(x.tid))
