from io in cluster.Function("libc!read")
select io.Arg + 1
