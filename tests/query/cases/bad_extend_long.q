extend "functions.c" cluster.Function("a!b").Sum(x => x.cpu + length("a string of more than fifteen bytes"))
