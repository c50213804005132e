from s in cluster.Syscall("read") group s by s.comm into g select new { g.Key, n = count() }
