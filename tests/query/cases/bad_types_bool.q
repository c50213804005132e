from io in cluster.Function("libc!read")
where io.tid & 1 == 1 select io
