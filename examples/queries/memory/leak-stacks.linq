// Stacks that allocated what is not freed soon
// What is freed within `age` is not among it; what was allocated in the last of it may be, and so is
// what realloc has moved. Of malloc and calloc: not of what realloc or posix_memalign give. Of
// a script they show the interpreter's functions, not its lines.
//   fay trace -f leak-stacks -p PID --for 30s
//   fay trace -f leak-stacks --flame -o leaks.html -p PID --for 30s
//   fay trace -f leak-stacks -- ls -l /etc
param age = 5s
from m in cluster.Return("libc!*alloc")
where m.function == "malloc" || m.function == "calloc"
join f in cluster.Function("libc!free") on m.ReturnValue equals f.Arg(0) within $age into g
where !g.Any(x => x.time > m.time)
let size = m.function == "calloc" ? m.Arg(0) * m.Arg(1) : m.Arg(0)
select new { stack = m.Stack(16), bytes = size } into kept
group kept by kept.stack into c
orderby c.Sum(x => x.bytes) descending
select new { c.Key, bytes = c.Sum(x => x.bytes), kept = c.Count() }
take 10
