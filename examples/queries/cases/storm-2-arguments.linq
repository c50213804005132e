// A storm of system calls, 2: their arguments
// Of the call that step 1 names: how many bytes are asked for, and from how many files? `argument`
// is the one that is looked at; `fay list --syscalls` names them, from 0 on. Of a call whose
// arguments are names of files, such as newfstatat: opens-by-name, statsnoop, then step 3.
//   seq 2000 | fay trace -f storm-2-arguments -- bash -c 'while read line; do :; done'
//   fay trace -f storm-2-arguments pread64 --for 5s
//   fay trace -f storm-2-arguments lseek argument=1 --for 5s
param call = "read"
param argument = 2
from s in cluster.Syscall("$call")
group s by s.Arg($argument) into g
orderby g.Count() descending
select new { asked = g.Key, calls = g.Count(), got = g.Sum(x => x.ReturnValue),
    files = g.DistinctCount(x => x.Arg(0)) }
