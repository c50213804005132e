// How long fsync and fdatasync take, by program
//   fay trace -f fsync-latency --for 10s
from s in cluster.Syscall("f*sync")
group s by s.comm into g
select new { g.Key, calls = g.Count(), took = g.Histogram(x => x.Duration) }
