// Sizes of requests to disks, by program
//   fay trace -f bitesize --for 10s
from r in cluster.Tracepoint("block:block_rq_issue")
group r by r.comm into g
select new { program = g.Key, requests = g.Count(), bytes = g.Histogram(x => x.rq.__data_len) }
