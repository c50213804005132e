// What came before a slow command
// A flight recorder with a trigger: nothing is shown until a command takes longer than 50 ms; then
// the commands of the second before it are.
//   fay trace -f flight-recorder --comm redis-server
from e in cluster.Return("redis-server!call")
join slow in cluster.Return("redis-server!call") on e.pid equals slow.pid within 1s
where slow.Duration > 50ms && e.time <= slow.time
select new { trigger = slow.time, before = slow.time - e.time, took = e.Duration, e.Failed }
