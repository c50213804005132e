from s in cluster.Syscall("read") group by s.comm select new { s.comm, n = count() }
