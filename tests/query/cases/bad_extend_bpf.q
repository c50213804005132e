extend "functions.c" cluster.Syscall("read").Count(x => is_hot(x.tid))
