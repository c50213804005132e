// Code that allocates most
// Of an interpreter that is its own allocator: malloc-stacks shows what it was doing then.
//   fay trace -f malloc-callers --comm redis-server --for 10s
//   fay trace -f malloc-callers -- ls -l /etc
param function = "libc!malloc"
from m in cluster.Function("$function")
group m by m.Caller into g
orderby g.Sum(x => x.Arg(0)) descending
select new { g.Key, calls = g.Count(), bytes = g.Sum(x => x.Arg(0)) }
take 20
