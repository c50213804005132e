cluster.Function("libc!read").Count(e => e.pid[1 == 1);
