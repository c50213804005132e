// Memory that programs map
//   fay trace -f mmaps --for 10s
//   fay trace -f mmaps -- ls
from m in cluster.Syscall("mmap")
where !m.Failed
group m by new { m.pid, m.comm } into g
orderby g.Sum(x => x.len) descending
select new { g.Key, calls = g.Count(), bytes = g.Sum(x => x.len) }
take 20
