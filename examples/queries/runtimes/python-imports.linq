// Modules that Python programs import
//   fay trace -f python-imports -- /usr/bin/python3 -c 'import json'
from i in cluster.Usdt("python3*!python:import__find__load__start")
group i by i.Arg(0).Text into g
orderby g.Count() descending
select new { module = g.Key, times = g.Count() }
