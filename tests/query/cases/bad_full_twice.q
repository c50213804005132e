from a in cluster.Function("a!b").WhenFull(Drop) join b in cluster.Return("a!b").WhenFull(Overwrite) on a.tid equals b.tid within 1s select a.tid
