from m in cluster.Function("libc!malloc").WhenFull(Overwrite) where m.Arg(0) > 4KiB select new { m.time, m.tid, size = m.Arg(0) }
