// How much programs send at once over TCP
//   fay trace -f tcp-send-sizes --for 10s
from s in cluster.Function(kernel, "tcp_sendmsg")
group s by s.comm into g
select new { program = g.Key, calls = g.Count(), bytes = g.Histogram(x => x.Arg(2)) }
