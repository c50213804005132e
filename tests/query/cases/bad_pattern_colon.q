cluster.Function("libc:malloc").Count()
