cluster.Function("libc!read).Count()
