extend "functions.c";
from a in cluster.Function("libc!read")
join b in cluster.Function("libc!write") on bucket(a.Arg(2), 100) equals bucket(b.Arg(2), 100) within 1ms
where is_hot(a.tid)
select new { x = bucket(b.Arg(2), 7), y = bucket(a.Arg(2), 7) + b.tid }
