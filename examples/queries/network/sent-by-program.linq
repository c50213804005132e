// Bytes that programs send, by size of a call
// The tracepoint is newer than Debian 12's own kernel.
//   fay trace -f sent-by-program --for 10s
from s in cluster.Tracepoint("sock:sock_send_length")
where s.ret > 0
group s by s.comm into g
orderby g.Sum(x => x.ret) descending
select new { program = g.Key, calls = g.Count(), bytes = g.Sum(x => x.ret),
    sizes = g.Histogram(x => x.ret) }
