from io in cluster.Function("libc!read")
whree io.cpu == 1 select io
