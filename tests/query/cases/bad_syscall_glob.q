cluster.Syscall("zz*").Count()
