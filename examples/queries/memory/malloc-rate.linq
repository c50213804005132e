// Allocations in each second
//   fay trace -f malloc-rate --comm redis-server --for 10s
//   fay trace -f malloc-rate -- find /usr/share/doc
param function = "libc!malloc"
from m in cluster.Function("$function").Tumbling(1s)
group m by 1 into g
select new { calls = g.Count(), bytes = g.Sum(x => x.Arg(0)), largest = g.Max(x => x.Arg(0)) }
