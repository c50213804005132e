from io in cluster.Function("libc!read")
where oi.time < Now select io
