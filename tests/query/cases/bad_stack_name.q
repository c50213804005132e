from e in cluster.Function("libc!read") group e by e.UserStak into g select new { g.Key }
