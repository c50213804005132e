from io in cluster.Function("libc!read")
where io.time < Now.AddMinuts(5) select io
