machine("web*").Function("libc!malloc").Count()
