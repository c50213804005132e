// Messages between a client and PostgreSQL
// Request tracing across processes, from what a client sends to what a server process receives. A
// message is told by its length, as packets are; of messages of the same length that are under way
// at once the first receipt is taken.
//   fay trace -f requests-postgres -p CLIENT -p SERVER --for 10s
from s in cluster.Function("libc!send")
join r in cluster.Return("libc!recv") on s.Arg(2) equals r.ReturnValue within 100ms
where r.time > s.time && r.pid != s.pid
group new { s, r } by new { client = s.pid, server = r.pid, s.time } into m
group m by new { m.Key.client, m.Key.server } into g
select new { g.Key, messages = g.Count(),
    p50 = g.Quantile(0.5, x => x.Min(y => y.r.time - y.s.time)),
    most = g.Max(x => x.Min(y => y.r.time - y.s.time)) }
