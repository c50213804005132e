cluster.Syscall(read).Count()
