// Processes that wait for locks of files
// Locks of lockf and fcntl are the call fcntl. Who waits may be a child of the process that was
// started: without -p all are seen.
//   fay trace -f flock-waits --for 10s
//   fay trace -f flock-waits fcntl least=1ms --for 10s
//   fay trace -f flock-waits least=0ns -- flock /tmp true
param call = "flock"
param least = 10us
from f in cluster.Syscall("$call")
where f.Duration >= $least
group f by new { f.pid, f.comm } into g
orderby g.Sum(x => x.Duration) descending
select new { g.Key, waits = g.Count(), total = g.Sum(x => x.Duration),
    longest = g.Max(x => x.Duration) }
take 20
