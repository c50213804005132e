cluster.Syscall("read").Count(r => r.cycles > 1)
