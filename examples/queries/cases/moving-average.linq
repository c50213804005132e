// A moving average, with an alarm at ten times it
// A row for each two seconds, moved by half a second, in which one read gave more than ten times
// what the reads gave on average.
//   fay trace -f moving-average --comm redis-server
from r in cluster.Return("libc!read").Sliding(2s, 500ms)
where r.ReturnValue > 0
group r by r.pid into g
where g.Max(x => x.ReturnValue) > 10 * g.Average(x => x.ReturnValue)
select new { g.Key, largest = g.Max(x => x.ReturnValue), average = g.Average(x => x.ReturnValue),
    reads = g.Count() }
