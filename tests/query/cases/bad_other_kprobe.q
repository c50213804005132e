cluster.Kprobe("vfs_read").Count()
