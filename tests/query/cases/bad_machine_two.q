from a in machine("web1").Function("a!b") join b in machine("web2").Function("a!c") on a.tid equals b.tid within 1s select a.tid
