// Where the time in system calls goes
//   fay trace -f syscall-time --for 10s
//   fay trace -f syscall-time -- sh -c "sleep 0.1"
from s in cluster.Syscall("*")
group s by s.function into g
orderby g.Sum(x => x.Duration) descending
select new { call = g.Key, calls = g.Count(), total = g.Sum(x => x.Duration),
    mean = g.Average(x => x.Duration), most = g.Max(x => x.Duration) }
take 15
