extend "functions.c" cluster.Function("a!b").Sum(x => named(x.tid))
