cluster.Syscall("raed").Count()
