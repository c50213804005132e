// Code that waits for locks that are not libc's
// Rust's locks, and those of many libraries, call futex themselves; pthread's are mutex-waits. Go
// has its own system calls, without libc: futex-waits shows that its threads wait.
//   fay trace -f lock-stacks --comm rg --for 10s
//   fay trace -f lock-stacks least=1ms -- rg -j 4 word /usr/share/doc
param least = 10us
from r in cluster.Return("libc!syscall")
where r.Arg(0) == 202 && r.Duration >= $least // futex
group r by r.Stack(6) into g
orderby g.Sum(x => x.Duration) descending
select new { g.Key, waits = g.Count(), total = g.Sum(x => x.Duration),
    longest = g.Max(x => x.Duration) }
take 10
