extend "functions.c" cluster.Function("a!b").Sum(x => hidden(x.tid))
