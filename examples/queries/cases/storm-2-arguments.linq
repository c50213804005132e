// A storm of system calls, 2: their arguments
// Of the call that step 1 names: how many bytes are asked for, and from how many files? Of one
// that has no size, such as newfstatat: opens-by-name, statsnoop, callers.
//   seq 2000 | fay trace -f storm-2-arguments -- bash -c 'while read line; do :; done'
//   fay trace -f storm-2-arguments pread64 --for 5s
param call = "read"
from s in cluster.Syscall("$call")
group s by s.Arg(2) into g
orderby g.Count() descending
select new { asked = g.Key, calls = g.Count(), got = g.Sum(x => x.ReturnValue),
    files = g.DistinctCount(x => x.Arg(0)) }
