// Where programs spend processor time
// The kernel walks these stacks by frame pointers; a program without them has short ones.
//   fay trace -f profile-user --for 10s
//   fay trace -f profile-user --folded -p PID --for 10s >program.folded
param interval = 10ms
from t in cluster.Timer($interval)
where t.pid != 0
group t by new { t.comm, t.UserStack } into g
orderby g.Count() descending
select new { g.Key, samples = g.Count() }
take 20
