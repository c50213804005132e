cluster.Usdt("postgres", "postgresql:query__start").Count()
