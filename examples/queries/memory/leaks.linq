// Code that allocates what is not freed soon
// What is freed within `age` is not among it; what was allocated in the last of it may be, and so is
// what realloc has moved. Of malloc and calloc: not of what realloc or posix_memalign give. Of
// an interpreter this is its allocator, and what it has not collected yet is among it: leak-stacks
// shows what it was doing then.
//   fay trace -f leaks -p PID --for 30s
//   fay trace -f leaks -- ls -l /etc
param age = 5s
from m in cluster.Return("libc!*alloc")
where m.function == "malloc" || m.function == "calloc"
join f in cluster.Function("libc!free") on m.ReturnValue equals f.Arg(0) within $age into g
where !g.Any(x => x.time > m.time)
let size = m.function == "calloc" ? m.Arg(0) * m.Arg(1) : m.Arg(0)
select new { m.Caller, bytes = size } into kept
group kept by kept.Caller into c
orderby c.Sum(x => x.bytes) descending
select new { c.Key, kept = c.Count(), bytes = c.Sum(x => x.bytes) }
take 20
