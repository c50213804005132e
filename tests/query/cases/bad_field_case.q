from io in cluster.Function("libc!read")
where io.Time < Now select io
