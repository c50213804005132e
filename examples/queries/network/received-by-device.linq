// Packets and bytes that are received, by device
//   fay trace -f received-by-device --for 10s
from p in cluster.Tracepoint("net:netif_receive_skb")
group p by p.skb.dev.name into g
orderby g.Sum(x => x.skb.len) descending
select new { device = g.Key, packets = g.Count(), bytes = g.Sum(x => x.skb.len) }
