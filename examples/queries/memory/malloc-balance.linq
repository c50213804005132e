// Allocations and frees, by thread
// realloc, which moves what is kept, is not looked at.
//   fay trace -f malloc-balance --comm redis-server --for 10s
//   fay trace -f malloc-balance -- ls -l /etc
from m in cluster.Function("libc![mcf][ar][le][le]*")
where m.function == "malloc" || m.function == "calloc" || m.function == "free"
    && m.Arg(0) != 0
group m by new { m.pid, m.tid } into g
let freed = g.Count(x => x.function == "free")
select new { g.Key, allocated = g.Count() - freed, freed, kept = g.Count() - 2 * freed }
