cluster.Return("libc!read").Where(r => r.ReturnValue < 0).Count()
