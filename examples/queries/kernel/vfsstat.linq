// Reads, writes, opens and syncs in each second
//   fay trace -f vfsstat --for 10s
from f in cluster.Function(kernel, "vfs_*").Tumbling(1s)
group f by f.function into g
select new { function = g.Key, calls = g.Count() }
