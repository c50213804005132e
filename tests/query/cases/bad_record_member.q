from io in cluster.Function("libc!read")
select new { io.tid } into r select r.tdi
