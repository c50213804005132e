from s in cluster.Syscall("read") where s.comm LIKE "dd%" select s
