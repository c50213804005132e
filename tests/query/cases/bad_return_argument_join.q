from a in cluster.Function("libc!read") join b in cluster.Return("libc!read") on a.tid equals b.tid within 5ms where b.Arg(0) == 3 select new { a.tid, b.ReturnValue }
