// Functions by the time that their calls take
// A call's time includes what it calls.
//   fay trace -f functime -- ls /
//   fay trace -f functime function='redis-server!*' --comm redis-server --for 10s
param function = "libc!*"
from r in cluster.Return("$function")
group r by r.function into g
orderby g.Sum(x => x.Duration) descending
select new { function = g.Key, calls = g.Count(), total = g.Sum(x => x.Duration),
    mean = g.Average(x => x.Duration) }
take 30
