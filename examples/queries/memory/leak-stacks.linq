// Stacks that allocated what is not freed in five seconds
// What was allocated in the last five seconds is among it if it was not freed by the end, and so is
// what realloc has moved. Of a script they show the interpreter's functions, not its lines.
//   fay trace -f leak-stacks -p PID --for 30s
//   fay trace -f leak-stacks --flame -o leaks.html -p PID --for 30s
//   fay trace -f leak-stacks -- ls -l /etc
from m in cluster.Return("libc!malloc")
join f in cluster.Function("libc!free") on m.ReturnValue equals f.Arg(0) within 5s into g
where g.Count(x => x.time > m.time) == 0
select new { stack = m.Stack(16), bytes = m.Arg(0) } into kept
group kept by kept.stack into c
orderby c.Sum(x => x.bytes) descending
select new { c.Key, bytes = c.Sum(x => x.bytes), kept = c.Count() }
take 10
