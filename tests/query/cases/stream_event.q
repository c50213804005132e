cluster.Function("libc!read")
