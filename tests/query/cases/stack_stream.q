cluster.Usdt("postgres!postgresql:query__start").Select(m => new { m.tid, m.UserStack })
