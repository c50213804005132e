// Statements that PostgreSQL runs, and how often
//   fay trace -f postgres-queries --comm postgres --for 10s
from q in cluster.Usdt("postgres!postgresql:query__start")
group q by q.Arg(0).Text into g
orderby g.Count() descending
select new { statement = g.Key, times = g.Count() }
take 20
