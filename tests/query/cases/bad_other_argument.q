cluster.Syscall("read").Count(x => x.fd == 3)
