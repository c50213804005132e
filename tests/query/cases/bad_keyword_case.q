from io in cluster.Function("libc!read")
Where io.cpu == 1 select io
