from io in cluster.Function("libc!read")
select io.tid == 1 ? 2 : "x"
