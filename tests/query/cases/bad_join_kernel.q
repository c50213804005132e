from a in cluster.Function("a!f") join b in cluster.Syscall("read") on a.tid equals b.tid within 1ms select a.tid
