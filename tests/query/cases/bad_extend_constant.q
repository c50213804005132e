extend "functions.c" cluster.Function("a!b").Sum(x => x.tid + bucket(100, 3))
