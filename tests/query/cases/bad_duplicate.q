from io in cluster.Function("libc!read")
select new { io.tid, tid = 1 }
