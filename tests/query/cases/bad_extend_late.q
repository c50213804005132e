cluster.Function("a!b").Count() extend "functions.c"
