// Step 2: the arguments of the call that step 1 names. How many bytes are asked for, and from how many files?
//   seq 2000 | fay trace "$(cat examples/queries/storm-2-arguments.linq)" -- bash -c 'while read line; do :; done'
from s in cluster.Syscall("read")
group s by s.Arg(2) into g
orderby g.Count() descending
select new { asked = g.Key, calls = g.Count(), got = g.Sum(x => x.ReturnValue), files = g.DistinctCount(x => x.Arg(0)) }
