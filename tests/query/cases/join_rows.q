from a in cluster.Function("a!open")
join b in (from y in cluster.Function("b!open") where y.Arg(1) == 3 select new { y.time, fd = y.Arg(0) }) on a.Arg(0) equals b.fd within 10s
select new { a.comm, b.fd, apart = b.time - a.time, sum = a.Arg(1) * 2 + b.fd }
