// Where the kernel spends processor time
//   fay trace -f profile-kernel --for 10s
//   fay trace -f profile-kernel --folded --for 10s >kernel.folded
param interval = 10ms
from t in cluster.Timer($interval)
where t.pid != 0
group t by new { t.comm, t.KernelStack } into g
orderby g.Count() descending
select new { g.Key, samples = g.Count() }
take 20
