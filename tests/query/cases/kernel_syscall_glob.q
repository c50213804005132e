cluster.Syscall("openat*").Count()
