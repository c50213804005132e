cluster.Function("libc!read").Count(x => x.comm.StartWith("a"))
