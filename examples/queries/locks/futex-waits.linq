// Time that threads spend waiting in futex
//   fay trace -f futex-waits --for 10s
param least = 10us
from f in cluster.Syscall("futex")
where f.Duration >= $least
group f by new { f.pid, f.comm } into g
orderby g.Sum(x => x.Duration) descending
select new { g.Key, waits = g.Count(), total = g.Sum(x => x.Duration) }
take 20
