from io in cluster.Function("libc!read")
where io.comm.StartsWith("redis") && io.function != "pread64" || io.module == "libc.so.6" select io.pid
