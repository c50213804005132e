// Descriptors that were opened but not closed, by process
// A process of whom this grows from run to run leaks. Pipes and dup are not counted.
// Who opens in such a process: fay trace -f stackcount -p PID function='libc!open*'; of a Python
// script the lines: python-lines
//   fay trace -f descriptor-leak --for 30s
from s in cluster.Syscall("*")
where !s.Failed && (s.function == "close" || s.function == "openat" || s.function == "open"
    || s.function == "socket" || s.function == "accept4" || s.function == "accept")
group s by s.pid into g
let more = 2 * g.Count(x => x.function != "close") - g.Count()
where more > 0
orderby more descending
select new { g.Key, opened = g.Count(x => x.function != "close"),
    closed = g.Count(x => x.function == "close"), more }
take 20
