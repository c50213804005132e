from io in cluster.Function("libc!read")
where io.time < Now.AddHours(99999999) select io
