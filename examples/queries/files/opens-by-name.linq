// The files that are opened most
//   fay trace -f opens-by-name --for 10s
//   fay trace -f opens-by-name most=5 -- ls -R /etc
param most = 20
from o in cluster.Syscall("open*")
where !o.Failed
group o by o.filename into g
orderby g.Count() descending
select new { file = g.Key, times = g.Count() }
take $most
