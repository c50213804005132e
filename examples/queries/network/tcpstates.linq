// What becomes of TCP connections
// States: 1 established, 2 SYN sent, 3 SYN received, 4 and 5 FIN wait, 6 time wait, 7 closed,
// 8 close wait, 9 last ACK, 10 listening, 11 closing.
//   fay trace -f tcpstates --for 10s
from s in cluster.Tracepoint("sock:inet_sock_set_state")
let port = (s.sk.__sk_common.skc_dport & 0xff) << 8 | s.sk.__sk_common.skc_dport >> 8
select new { s.time, s.comm, local = s.sk.__sk_common.skc_num, remote = port,
    before = s.oldstate, after = s.newstate }
