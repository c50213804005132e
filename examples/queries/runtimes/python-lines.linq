// Lines that Python programs execute most
// Python's marker for lines; where stacks show the interpreter, this shows the script.
//   fay trace -f python-lines -- /usr/bin/python3 -c 'import json; json.dumps([1] * 1000)'
//   fay trace -f python-lines -p PID --for 5s --budget 50%
from l in cluster.Usdt("python3*!python:line")
group l by new { file = l.Arg(0).Text, function = l.Arg(1).Text, line = l.Arg(2) } into g
orderby g.Count() descending
select new { g.Key, times = g.Count() }
take 20
