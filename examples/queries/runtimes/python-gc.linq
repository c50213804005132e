// Garbage collections of Python, by generation
//   fay trace -f python-gc -- /usr/bin/python3 -c 'import gc; gc.collect()'
from c in cluster.Usdt("python3*!python:gc__start")
group c by c.Arg(0) into g
select new { generation = g.Key, collections = g.Count() }
