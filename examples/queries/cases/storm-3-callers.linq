// A storm of system calls, 3: who makes them
//   seq 2000 | fay trace -f storm-3-callers -- bash -c 'while read line; do :; done'
from r in cluster.Function("libc!read")
where r.Arg(2) == 1
group r by r.Caller into g
orderby g.Count() descending
select new { g.Key, calls = g.Count() }
