cluster.Function("libc!read").Count(e => e.comm.EndWith("server"));
