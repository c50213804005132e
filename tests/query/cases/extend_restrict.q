extend "functions.c" cluster.Function("a!b").Sum(x => limited(x.comm))
