// Code that allocates what is not freed soon
// What is freed within `age` is not among it; what was allocated in the last of it may be, and so is
// what realloc has moved. Of malloc alone: not of calloc or posix_memalign. An address that is used
// again and again within that time makes many pairs: if many events are lost, take a shorter age. Of
// an interpreter this is its allocator, and what it has not collected yet is among it: leak-stacks
// shows what it was doing then.
//   fay trace -f leaks -p PID --for 30s
//   fay trace -f leaks -- ls -l /etc
param age = 5s
from m in cluster.Return("libc!malloc")
join f in cluster.Function("libc!free") on m.ReturnValue equals f.Arg(0) within $age into g
where g.Count(x => x.time > m.time) == 0
select new { m.Caller, bytes = m.Arg(0) } into kept
group kept by kept.Caller into c
orderby c.Sum(x => x.bytes) descending
select new { c.Key, kept = c.Count(), bytes = c.Sum(x => x.bytes) }
take 20
