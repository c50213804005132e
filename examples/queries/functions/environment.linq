// Environment variables that programs look at
//   fay trace -f environment -- ls -l /etc
from g in cluster.Return("libc!getenv")
group g by new { name = g.Arg(0).Text, there = g.ReturnValue != 0 } into v
orderby v.Count() descending
select new { v.Key, times = v.Count() }
