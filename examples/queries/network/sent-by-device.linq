// Packets and bytes that are sent, by device
//   fay trace -f sent-by-device --for 10s
from p in cluster.Tracepoint("net:net_dev_queue")
group p by p.skb.dev.name into g
orderby g.Sum(x => x.skb.len) descending
select new { device = g.Key, packets = g.Count(), bytes = g.Sum(x => x.skb.len) }
