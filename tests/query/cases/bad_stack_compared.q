cluster.Function("libc!read").Count(e => e.UserStack == e.UserStack)
