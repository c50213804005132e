extend "functions.c"
from x in cluster.Function("libc!read")
where is_hot(x.tid) && length(x.comm) > 3
let size = bucket(x.Arg(2), 1024)
group x by size into g
select new { g.Key, again = bucket(g.Key, 2), n = g.Count(x => is_hot(x.cpu)), m = g.Sum(x => bucket(x.Arg(2), 10)), r = g.Count() + bucket(g.Key, 3) }
