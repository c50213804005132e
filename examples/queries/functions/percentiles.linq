// Median, p99 and longest call, by function
//   fay trace -f percentiles -- ls -l /etc
//   fay trace -f percentiles 'redis-server!*Command' --comm redis-server --for 10s
param function = "libc!*"
from r in cluster.Return("$function")
group r by r.function into g
orderby g.Quantile(0.99, x => x.Duration) descending
select new { function = g.Key, calls = g.Count(), p50 = g.Quantile(0.5, x => x.Duration),
    p99 = g.Quantile(0.99, x => x.Duration), longest = g.Max(x => x.Duration) }
take 20
