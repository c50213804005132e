from io in cluster.Function("libc!read")
let c = io.Arg(2) < 0 ? "bad" : io.comm group io by c into g select new { g.Key, n = g.Count() }
