from c in Function("libc!read") select c.pid
