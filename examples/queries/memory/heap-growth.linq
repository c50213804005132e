// Heaps that grow, by process
// Of the heap that grows by brk. Threads but the first have heaps of their own, which grow by
// mprotect, and large blocks come by mmap: mmaps, page-faults, malloc-stacks. How large it was before
// the first of `calls` is not known: what that one gave is not among `grown_bytes`.
//   fay trace -f heap-growth --for 1m
param most = 64GiB // above are processes that executed another program meanwhile
from b in cluster.Syscall("brk")
where b.Arg(0) != 0
group b by new { b.pid, b.comm } into g
let grown = g.Last(x => x.ReturnValue) - g.First(x => x.ReturnValue)
where grown >= 0 && grown < $most
orderby grown descending
select new { g.Key, calls = g.Count(), grown_bytes = grown }
take 20
