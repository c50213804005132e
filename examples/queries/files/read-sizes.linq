// How many bytes a read returns, by program
//   fay trace -f read-sizes --for 10s
//   fay trace -f read-sizes -- wc /etc/services
from r in cluster.Syscall("read")
where !r.Failed
group r by r.comm into g
orderby g.Count() descending
select new { g.Key, reads = g.Count(), bytes = g.Histogram(x => x.ReturnValue) }
