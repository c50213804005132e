from io in cluster.Function("libc!read")
where io.function.StartsWith("re") select io
