cluster.Retrun("libc!read").Count()
