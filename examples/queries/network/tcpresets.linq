// TCP connections that are reset
//   fay trace -f tcpresets --for 1m
from r in cluster.Tracepoint("tcp:tcp_receive_reset")
let remote = (r.sk.__sk_common.skc_dport & 0xff) << 8 | r.sk.__sk_common.skc_dport >> 8
select new { r.time, local = r.sk.__sk_common.skc_num, remote }
