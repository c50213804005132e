// Code that waits for mutexes
// Those of pthread alone (lock, timedlock, clocklock). Rust has its own: lock-stacks. Python's are semaphores: semaphore-waits.
// Go's, Java's and all others come to futex: futex-waits. Locks of files: flock-waits.
//   fay trace -f mutex-waits --comm mariadbd --for 10s
//   fay trace -f mutex-waits least=1us -- ls
param least = 10us
from l in cluster.Return("libc!pthread_mutex*[_dk]lock")
where l.Duration >= $least
group l by l.Caller into g
orderby g.Sum(x => x.Duration) descending
select new { g.Key, waits = g.Count(), total = g.Sum(x => x.Duration),
    longest = g.Max(x => x.Duration) }
take 20
