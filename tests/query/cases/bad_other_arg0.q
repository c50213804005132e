cluster.Function("libc!read").Sum(x => x.arg2)
