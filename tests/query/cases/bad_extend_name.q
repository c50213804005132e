extend "functions.c"
cluster.Function("a!b").Sum(x => buckt(x.tid, 3))
