// How busy each processor is
//   fay trace -f cpuwalk --for 10s
from t in cluster.Timer(10ms)
group t by t.cpu into g
orderby g.Key
select new { processor = g.Key, busy = g.Count(x => x.pid != 0), samples = g.Count() }
