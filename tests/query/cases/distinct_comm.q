cluster.Function("libc!read").DistinctCount(x => x.comm)
