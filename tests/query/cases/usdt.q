from m in cluster.Usdt("postgres!postgresql:lwlock__*") group m by new { m.function, mode = m.Arg(1) } into g
select new { g.Key.function, g.Key.mode, n = g.Count() }
