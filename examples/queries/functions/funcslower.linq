// Calls that take long, one by one, with who called
//   fay trace -f funcslower least=1ms -- sleep 0.02
//   fay trace -f funcslower 'redis-server!call' 5ms --comm redis-server
param function = "libc!*sleep"
param least = 10ms
from r in cluster.Return("$function")
where r.Duration >= $least
select new { r.time, r.tid, r.function, took = r.Duration, result = r.ReturnValue, r.Caller }
