cluster.Return("libc!read").Every(1000).Count(r => r.Failed)
