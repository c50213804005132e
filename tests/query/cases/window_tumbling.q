cluster.Function("libc!read").Tumbling(1s).Count()
