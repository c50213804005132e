cluster.Function("libc!malloc").Count(e => e.Caller == "main");
