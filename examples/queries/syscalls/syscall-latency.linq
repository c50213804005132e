// How long a system call takes, by program
//   fay trace -f syscall-latency --for 10s
//   fay trace -f syscall-latency call=futex --comm mariadbd --for 10s
param call = "read"
from s in cluster.Syscall("$call")
group s by s.comm into g
orderby g.Count() descending
select new { g.Key, calls = g.Count(), took = g.Histogram(x => x.Duration) }
