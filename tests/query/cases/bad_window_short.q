cluster.Function("libc!read").Tumbling(10us).Count()
