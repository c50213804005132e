from io in cluster.Function("libc!read")
where io.tme < Now.AddMinutes(5)
select io
