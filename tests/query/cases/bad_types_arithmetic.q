from io in cluster.Function("libc!read")
select io.comm + 1
