// Processes killed because memory ran out
// `allocated` is the program that needed memory when none was left.
//   fay trace -f oomkill --for 1h
from o in cluster.Tracepoint("oom:mark_victim")
select new { o.time, allocated = o.comm }
