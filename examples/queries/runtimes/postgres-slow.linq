// Statements that take PostgreSQL long
// Of all ends after a beginning in the same server process the first one is its own.
//   fay trace -f postgres-slow --comm postgres --for 1m
//   fay trace -f postgres-slow 100ms --comm postgres --for 1m
param least = 10ms
from q in cluster.Usdt("postgres!postgresql:query__start")
join d in cluster.Usdt("postgres!postgresql:query__done") on q.pid equals d.pid within 10s
where d.time > q.time
group new { q, d } by new { q.time, q.pid, statement = q.Arg(0).Text } into g
where g.Min(x => x.d.time - x.q.time) >= $least
orderby g.Key.time
select new { g.Key, took = g.Min(x => x.d.time - x.q.time) }
