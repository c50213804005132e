// A storm of system calls, 3: who makes them
// Of libc's function for the call, with the argument's value that step 2 has shown; asked=-1: with
// any.
//   seq 2000 | fay trace -f storm-3-callers -- bash -c 'while read line; do :; done'
//   fay trace -f storm-3-callers 'libc!pread64' 4096 -p PID --for 5s
//   fay trace -f storm-3-callers 'libc!fstatat*' asked=-1 -p PID --for 5s
param function = "libc!read"
param asked = 1
param argument = 2
from r in cluster.Function("$function")
where $asked < 0 || r.Arg($argument) == $asked
group r by r.Caller into g
orderby g.Count() descending
select new { g.Key, calls = g.Count() }
