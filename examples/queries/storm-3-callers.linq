// Step 3: who makes these calls?
//   seq 2000 | fay trace "$(cat examples/queries/storm-3-callers.linq)" -- bash -c 'while read line; do :; done'
from r in cluster.Function("libc!read")
where r.Arg(2) == 1
group r by r.Caller into g
orderby g.Count() descending
select new { g.Key, calls = g.Count() }
