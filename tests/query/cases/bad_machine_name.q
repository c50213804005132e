machin("web1").Function("a!b").Count()
