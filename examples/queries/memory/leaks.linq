// Allocations that are not freed within five seconds
//   fay trace -f leaks -p PID --for 30s
//   fay trace -f leaks -- ls -l /etc
from m in cluster.Return("libc!malloc")
join f in cluster.Function("libc!free") on m.ReturnValue equals f.Arg(0) within 5s into g
where g.Count(x => x.time > m.time) == 0
select new { m.time, bytes = m.Arg(0), m.Caller }
