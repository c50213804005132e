// Latency of the commands of Redis
//   fay trace -f redis-commands --comm redis-server --for 10s
from c in cluster.Return("redis-server!*Command")
group c by c.function into g
orderby g.Sum(x => x.Duration) descending
select new { command = g.Key, calls = g.Count(), p50 = g.Quantile(0.5, x => x.Duration),
    p99 = g.Quantile(0.99, x => x.Duration) }
