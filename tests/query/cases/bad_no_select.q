from io in cluster.Function("libc!read")
where io.tid == 5
