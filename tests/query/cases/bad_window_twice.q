cluster.Function("libc!read").Tumbling(1s).Tumbling(2s).Count()
