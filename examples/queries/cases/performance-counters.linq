// Performance counters of many machines, by program
// Fay (SOSP 2011), section 4: how many allocations a second and of how many bytes, over all
// machines that are asked. Without --cluster it is about this machine.
//   fay trace -f performance-counters --cluster URL --key asker.key --comm redis-server
//   fay trace -f performance-counters --comm redis-server
from m in cluster.Function("libjemalloc!malloc").Tumbling(1s)
group m by m.comm into g
select new { g.Key, allocations = g.Count(), bytes = g.Sum(x => x.Arg(0)),
    largest = g.Max(x => x.Arg(0)) }
