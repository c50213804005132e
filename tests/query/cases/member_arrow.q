cluster.Function("libc!read").Where(r => r->pid - r->Arg(0) < 0).Count()
