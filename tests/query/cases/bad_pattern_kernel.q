cluster.Return("kernel!vfs_read").Count()
