// How long reader-writer locks take to get
// Those of pthread; Rust's are lock-stacks, Go's futex-waits.
//   fay trace -f rwlock-waits --comm mariadbd --for 10s
from l in cluster.Return("libc!pthread_rwlock_[crtw]*[dr]lock")
group l by l.function into g
select new { g.Key, calls = g.Count(), took = g.Histogram(x => x.Duration) }
