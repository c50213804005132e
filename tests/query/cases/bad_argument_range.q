from io in cluster.Function("libc!read")
where io.Arg(6) == 1 select io
