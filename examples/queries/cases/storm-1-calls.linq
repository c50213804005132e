// A storm of system calls, 1: which calls
// Which calls, how often, and what they cost. On bash, whose `read` asks a pipe for one byte at a
// time:
//   seq 2000 | fay trace -f storm-1-calls -- bash -c 'while read line; do :; done'
from s in cluster.Syscall("*")
group s by s.function into g
orderby g.Count() descending
select new { call = g.Key, calls = g.Count(), failed = g.Count(x => x.Failed),
    took = g.Sum(x => x.Duration) }
take 5
