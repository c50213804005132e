cluster.Function("libc!read").Count(e => e.comm.Length() == 1);
