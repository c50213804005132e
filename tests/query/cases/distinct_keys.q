from io in cluster.Function("libc!read")
group io by io.comm into g select g.Key
