from io in cluster.Function("libc!read")
group io by io.tid into g select g
