from a in cluster.Function("a!f") join b in cluster.Function("a!g") on new { a.tid, a.pid } equals new { b.tid } within 1ms select a.tid
