extend "functions.c" cluster.Function("a!b").Sum(x => part(x.tid))
