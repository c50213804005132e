cluster.Function("a!b").WhenFull(Overwite).Select(m => m.tid)
