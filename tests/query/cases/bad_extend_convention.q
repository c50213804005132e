extend "functions.c" cluster.Function("a!b").Sum(x => elsewhere(x.tid))
