from f in cluster.Function("libc!read") group f by f.tid into g select g.Key, g.Count()
