cluster.Function("libc!read").DistinctCount(e => e.Stack)
