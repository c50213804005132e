// Commands that are typed into bash
//   fay trace -f bashreadline --comm bash
from r in cluster.Return("bash!readline")
where r.ReturnValue != 0
select new { r.time, r.pid, line = r.ReturnValue.Text }
