from s in cluster.Syscall("read") select s.comm limit 10
