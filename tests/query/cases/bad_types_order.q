from io in cluster.Function("libc!read")
where io.comm < "b" select io
