// Which programs use the processors
// swapper/N is an idle processor.
//   fay trace -f profile --for 10s
param interval = 10ms
from t in cluster.Timer($interval)
group t by t.comm into g
orderby g.Count() descending
select new { program = g.Key, samples = g.Count() }
