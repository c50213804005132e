// One transaction in eight, chosen at random
// By a hash of the transaction's number; of each one how long it took to the end of its first
// query.
//   fay trace -f sampling -p BACKEND
from t in cluster.Usdt("postgres!postgresql:transaction__start")
join d in cluster.Usdt("postgres!postgresql:query__done") on t.pid equals d.pid within 1s
where t.Arg(0) * 0x9e3779b97f4a7c15 >>> 61 == 0
where d.time > t.time
group new { t, d } by new { t.pid, transaction = t.Arg(0) } into g
select new { g.Key, took = g.Min(x => x.d.time - x.t.time) }
