cluster.Function("libc!read").Count(e => e.fd[1] == 1);
