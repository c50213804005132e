cluster.Function("libc!read").Max(r => r.Duration)
