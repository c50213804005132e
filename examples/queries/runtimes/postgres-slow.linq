// Statements that take PostgreSQL long
//   fay trace -f postgres-slow --comm postgres --for 1m
//   fay trace -f postgres-slow 100ms --comm postgres
param least = 10ms
from q in cluster.Return("postgres!exec_simple_query")
where q.Duration >= $least
select new { q.time, q.pid, took = q.Duration, statement = q.Arg(0).Text }
