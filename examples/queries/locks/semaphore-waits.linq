// Code that waits for semaphores, Python's locks among it
// Python's threading.Lock, and the lock of its queues, is a semaphore of libc.
//   fay trace -f semaphore-waits --comm python3 --for 10s
//   fay trace -f semaphore-waits least=1ms -p PID --for 10s
param least = 10us
from w in cluster.Return("libc!sem*[^y]wait")
where w.Duration >= $least
group w by new { w.tid, w.function, w.Caller } into g
orderby g.Sum(x => x.Duration) descending
select new { g.Key, waits = g.Count(), total = g.Sum(x => x.Duration),
    longest = g.Max(x => x.Duration) }
take 20
