cluster.Return("libc!malloc").Count(e => e.Caller == 1);
