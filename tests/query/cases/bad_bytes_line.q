/* ÿ[31m Ã */ cluster.Funct("a!b")
