// How many bytes a write takes, by program
//   fay trace -f write-sizes --for 10s
//   fay trace -f write-sizes -- ls -l /etc
from w in cluster.Syscall("write")
where !w.Failed
group w by w.comm into g
orderby g.Count() descending
select new { g.Key, writes = g.Count(), bytes = g.Histogram(x => x.ReturnValue) }
