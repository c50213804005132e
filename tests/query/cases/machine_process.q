from c in machine("db1").process("postgres").Return("postgres!exec_simple_query") group c by c.Failed into g select new { g.Key, n = g.Count() }
