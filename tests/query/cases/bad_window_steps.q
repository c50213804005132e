cluster.Function("libc!read").Sliding(10s, 3s).Count()
