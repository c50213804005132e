machine(1).Function("libc!malloc").Count()
