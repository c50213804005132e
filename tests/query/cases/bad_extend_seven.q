extend "functions.c" cluster.Function("a!b").Sum(x => seven(x.tid))
