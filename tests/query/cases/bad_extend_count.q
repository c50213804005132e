extend "functions.c"
cluster.Function("a!b").Sum(x => bucket(x.tid))
