from io in cluster.Function("libc!read")
where io.tid == 1 &&
	io.cmm == "x"
select io
