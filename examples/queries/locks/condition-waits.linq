// Code that waits for conditions
// Those of pthread; Rust's are lock-stacks, Go's futex-waits.
//   fay trace -f condition-waits --comm mariadbd --for 10s
from w in cluster.Return("libc!pthread_cond_*wait")
group w by new { w.function, w.Caller } into g
orderby g.Sum(x => x.Duration) descending
select new { g.Key, waits = g.Count(), total = g.Sum(x => x.Duration) }
take 20
