from io in cluster.Function("libc!read")
where time < Now select io
