// Functions that Python programs call most
// Python 3.11, as of Debian 12, comes to this marker in generators alone, others at each call.
//   fay trace -f python-calls -- /usr/bin/python3 -c 'import json; json.dumps([1] * 1000)'
from c in cluster.Usdt("python3*!python:function__entry")
group c by new { file = c.Arg(0).Text, function = c.Arg(1).Text } into g
orderby g.Count() descending
select new { g.Key, calls = g.Count() }
take 20
