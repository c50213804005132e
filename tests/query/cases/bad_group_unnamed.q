from r in cluster.Function("libc!read") group r by r.tid select r.Count()
