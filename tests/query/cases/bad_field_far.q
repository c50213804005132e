from io in cluster.Function("libc!read")
where io.banana < Now select io
