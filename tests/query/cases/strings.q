cluster.Function("libc!read").Count(e => e.comm.EndsWith("server") && (e.comm.Contains("redis") || e.comm.Length > 12));
