kernel.Function("vfs_read").Count()
