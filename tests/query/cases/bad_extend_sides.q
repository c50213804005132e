extend "functions.c"
from a in cluster.Function("libc!read")
join b in cluster.Function("libc!write") on a.tid equals b.tid within 1ms
select bucket(a.Arg(2), b.Arg(2))
