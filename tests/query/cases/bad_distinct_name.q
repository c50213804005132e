from x in cluster.Function("libc!malloc") select new { x.tid } into y let z = y.tid distinct orderby z select y
