cluster.Syscall("write").WhenFull(Drop).Select(w => w.tid)
