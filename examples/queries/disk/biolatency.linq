// How long disks take for a request
// A request's structure is used again: of all completions after an issue the first is its own.
//   fay trace -f biolatency --for 10s
//   fay trace -f biolatency pid=1234 --for 10s
param pid = 0 // 0: all processes; a request completes in whatever thread then runs, so not by -p
from i in cluster.Tracepoint("block:block_rq_issue")
join c in cluster.Tracepoint("block:block_rq_complete") on i.rq equals c.rq within 1s
where c.time > i.time && ($pid == 0 || i.pid == $pid)
group new { i, c } by new { i.rq, i.time } into r
group r by 1 into g
select new { requests = g.Count(), latency = g.Histogram(x => x.Min(y => y.c.time - y.i.time)) }
