cluster.Return("libc!read").DistinctCount(e => e.UserStack)
