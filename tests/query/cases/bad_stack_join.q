from a in cluster.Function("libc!read") join b in cluster.Return("libc!read") on a.tid equals b.tid within 5ms select new { a.tid, a.UserStack }
