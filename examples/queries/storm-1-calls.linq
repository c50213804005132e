// A storm of system calls, step 1: which calls, how often, and what they cost. On bash, whose `read` asks a pipe for one byte at a time:
//   seq 2000 | fay trace "$(cat examples/queries/storm-1-calls.linq)" -- bash -c 'while read line; do :; done'
from s in cluster.Syscall("*")
group s by s.function into g
orderby g.Count() descending
select new { call = g.Key, calls = g.Count(), failed = g.Count(x => x.Failed), nanoseconds = g.Sum(x => x.Duration) }
take 5
