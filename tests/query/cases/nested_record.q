from io in cluster.Function("libc!read")
select new { who = new { io.pid, io.tid }, n = io.Arg(2) }
