extend "functions.c"
from x in cluster.Function("libc!read")
group x by x.tid into g
group g by bucket(g.Key, 10) into h
select new { h.Key, n = h.Count() }
