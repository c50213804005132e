from io in cluster.Function("libc!read")
where io.time < Now.AddMinutes(io.tid) select io
