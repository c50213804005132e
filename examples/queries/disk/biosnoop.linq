// Each request to a disk: who, how much, how long
//   fay trace -f biosnoop --for 10s
//   fay trace -f biosnoop pid=1234 --for 10s
param pid = 0 // 0: all processes; a request completes in whatever thread then runs, so not by -p
from i in cluster.Tracepoint("block:block_rq_issue")
join c in cluster.Tracepoint("block:block_rq_complete") on i.rq equals c.rq within 1s
where c.time > i.time && ($pid == 0 || i.pid == $pid)
group new { i, c } by new { i.time, i.rq, i.comm } into r
orderby r.Key.time
select new { r.Key.time, r.Key.comm, bytes = r.Max(x => x.c.nr_bytes),
    took = r.Min(x => x.c.time - x.i.time) }
