// Latency of a function by who called it
// Each call is paired with the first end after it in its thread.
//   fay trace -f latency-by-caller -- /usr/bin/python3 -c 'import json'
//   fay trace -f latency-by-caller 'libc!write' -p PID --for 10s
param function = "libc!read"
from f in cluster.Function("$function")
join r in cluster.Return("$function") on f.tid equals r.tid within 1s
where r.time >= f.time
group new { f, r } by new { f.time, f.Caller } into call
group call by call.Key.Caller into g
orderby g.Count() descending
select new { g.Key, calls = g.Count(), latency = g.Histogram(x => x.Min(y => y.r.time - y.f.time)) }
