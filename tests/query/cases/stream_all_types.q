from io in cluster.Function("libc!read")
select new { io.time, io.comm, io.function, slow = io.Arg(2) > 10, io.cycles }
