cluster.Syscall("read").Count(r => r.Arg(6) > 1)
