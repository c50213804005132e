// Functions of the virtual file system, by calls
//   fay trace -f vfscount --for 10s
from f in cluster.Function(kernel, "vfs_*")
group f by f.function into g
orderby g.Count() descending
select new { function = g.Key, calls = g.Count() }
