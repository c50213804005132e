cluster.Function("libc!read").DistinctCount(e => e.KernelStack(3))
