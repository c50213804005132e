extend "functions.c" extend "functions.c" cluster.Function("a!b").Count()
