// Programs that wait while memory is reclaimed
//   fay trace -f reclaim --for 1m
from r in cluster.Tracepoint("vmscan:mm_vmscan_direct_reclaim_begin")
group r by new { r.pid, r.comm } into g
orderby g.Count() descending
select new { g.Key, times = g.Count() }
