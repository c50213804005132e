// Distributed performance counters (Fay, section 4): how many allocations a second and of how many bytes, by program, over all machines that are asked.
//   fay trace --cluster URL --key asker.key --comm redis-server "$(cat examples/queries/performance-counters.linq)"
// The same text without --cluster is about this machine.
from m in cluster.Function("libjemalloc!malloc").Tumbling(1s)
group m by m.comm into g
select new { g.Key, allocations = g.Count(), bytes = g.Sum(x => x.Arg(0)), largest = g.Max(x => x.Arg(0)) }
