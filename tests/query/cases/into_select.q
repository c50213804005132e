from io in cluster.Function("libc!read")
select new { kb = io.Arg(2) / 1024 } into r group r by r.kb into g select new { g.Key, n = g.Count() }
