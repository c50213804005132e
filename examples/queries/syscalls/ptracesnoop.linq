// Programs that look into other processes
//   fay trace -f ptracesnoop --for 1m
from p in cluster.Syscall("p*trace")
group p by new { p.pid, p.comm, target = p.Arg(1), p.Error } into g
select new { g.Key, calls = g.Count() }
