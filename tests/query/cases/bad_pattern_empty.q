cluster.Function("libc!").Count()
