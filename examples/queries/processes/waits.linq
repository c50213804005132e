// How long programs wait for their children
//   fay trace -f waits --for 10s
//   fay trace -f waits -- sh -c "sleep 0.1; sleep 0.2"
from w in cluster.Syscall("wait*")
group w by new { w.pid, w.comm } into g
orderby g.Sum(x => x.Duration) descending
select new { g.Key, waits = g.Count(), total = g.Sum(x => x.Duration),
    longest = g.Max(x => x.Duration) }
