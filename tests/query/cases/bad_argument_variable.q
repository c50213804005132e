from io in cluster.Function("libc!read")
select io.Arg(io.cpu)
