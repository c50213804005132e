cluster.Usdt("postgres:query__start").Count()
