from c in cluster.Function("libc!read") where c.pid == 3 and c.tid == 4 select c.pid
