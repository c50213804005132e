from io in cluster.Function("libc!read")
where cluster.Function("a!b").Count() == 1 select io
