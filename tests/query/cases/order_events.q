from io in cluster.Function("libc!read")
orderby io.tid select io
