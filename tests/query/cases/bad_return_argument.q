cluster.Return(kernel, "vfs_read").Sum(r => r.Arg(2))
