// Page faults, by program
//   fay trace -f page-faults --for 10s
//   fay trace -f page-faults -- ls
from f in cluster.Tracepoint("exceptions:page_fault_user")
group f by new { f.pid, f.comm } into g
orderby g.Count() descending
select new { g.Key, faults = g.Count() }
take 20
