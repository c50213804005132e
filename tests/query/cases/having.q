from io in cluster.Function("libc!read")
group io by io.tid into g where g.Count() > 5 select g.Key
