from io in cluster.Function("libc!read")
where io.comm == "redis-server"
select new {io.tid, size = io.Arg(2)}
