// Packets that the kernel drops, by reason
//   fay trace -f packet-drops --for 10s
from d in cluster.Tracepoint("skb:kfree_skb")
group d by d.reason into g
orderby g.Count() descending
select new { reason = g.Key, packets = g.Count() }
