// A storm of system calls, 3: who makes them
// Step 2 has said how many bytes each asks for. Of a call without a size: callers.
//   seq 2000 | fay trace -f storm-3-callers -- bash -c 'while read line; do :; done'
//   fay trace -f storm-3-callers 'libc!pread64' 4096 -p PID --for 5s
param function = "libc!read"
param asked = 1
from r in cluster.Function("$function")
where r.Arg(2) == $asked
group r by r.Caller into g
orderby g.Count() descending
select new { g.Key, calls = g.Count() }
