// TCP segments that are sent again, by port
//   fay trace -f tcpretrans --for 1m
from r in cluster.Tracepoint("tcp:tcp_retransmit_skb")
let remote = (r.sk.__sk_common.skc_dport & 0xff) << 8 | r.sk.__sk_common.skc_dport >> 8
group r by new { local = r.sk.__sk_common.skc_num, remote } into g
orderby g.Count() descending
select new { g.Key, times = g.Count() }
