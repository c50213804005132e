// Why disks are asked: the kernel's stacks
//   fay trace -f biostacks --for 10s
from r in cluster.Tracepoint("block:block_rq_issue")
group r by r.KernelStack into g
orderby g.Count() descending
select new { g.Key, requests = g.Count() }
take 10
