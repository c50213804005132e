cluster.Syscall("write").WhenFull(Block).Select(w => w.tid)
