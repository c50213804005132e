cluster.Function("libc!read").Count(e => e.comm.Contains("a name of seventeen"));
