from io in cluster.Function("libc!read")
where io.time < 5 select io
