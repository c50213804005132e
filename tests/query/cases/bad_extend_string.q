extend "functions.c" cluster.Function("a!b").Sum(x => length(x.tid))
