from io in cluster.Function("libc!read")
where io.function == "libc!read" select io
