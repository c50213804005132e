// Bytes that programs read from and write to disks
// Data that is written later is the kernel's own (kworker), whoever wrote it.
//   fay trace -f disk-bytes --for 10s
from r in cluster.Tracepoint("block:block_rq_issue")
let written = (r.rq.cmd_flags & 1) != 0 ? r.rq.__data_len : 0
group new { r, written } by r.comm into g
orderby g.Sum(x => x.r.rq.__data_len) descending
select new { program = g.Key, requests = g.Count(), written_bytes = g.Sum(x => x.written),
    read_bytes = g.Sum(x => x.r.rq.__data_len - x.written) }
