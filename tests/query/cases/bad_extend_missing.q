extend "no_such.c" cluster.Function("a!b").Count(x => f(x.tid) > 0)
