// Requests through nginx, from begin to end
// Request tracing as Magpie (OSDI 2004) does it, through an event loop in which one thread has many
// requests under way. The request is told by its structure's address, which is used again: of all
// ends after a beginning the first one is its own.
//   fay trace -f requests-nginx --comm nginx --for 10s
from b in cluster.Function("nginx!ngx_http_process_request")
join e in cluster.Function("nginx!ngx_http_free_request")
    on new { b.pid, request = b.Arg(0) } equals new { e.pid, request = e.Arg(0) } within 5s
where e.time > b.time
group new { b, e } by new { b.pid, request = b.Arg(0), b.time } into r
group r by r.Key.pid into g
select new { g.Key, requests = g.Count(),
    p50 = g.Quantile(0.5, x => x.Min(y => y.e.time - y.b.time)),
    p99 = g.Quantile(0.99, x => x.Min(y => y.e.time - y.b.time)) }
