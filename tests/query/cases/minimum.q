cluster.Function("libc!read").Min(x => x.time)
