// Programs that use BPF
//   fay trace -f bpfsnoop --for 1m
from b in cluster.Syscall("bpf")
group b by new { b.pid, b.comm, b.cmd, b.Error } into g
orderby g.Count() descending
select new { g.Key, times = g.Count() }
