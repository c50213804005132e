// The mutexes that are waited for longest
// Global ones by name; one in allocated memory or on a stack by its address. Rust's locks are
// lock-stacks, Go's futex-waits.
//   fay trace -f mutex-addresses --comm mariadbd --for 10s
param least = 10us
from l in cluster.Return("libc!pthread_mutex_lock")
where l.Duration >= $least
group l by l.Arg(0).Symbol into g
orderby g.Sum(x => x.Duration) descending
select new { mutex = g.Key, waits = g.Count(), total = g.Sum(x => x.Duration),
    threads = g.DistinctCount(x => x.tid) }
take 20
