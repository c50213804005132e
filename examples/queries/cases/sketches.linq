// Frequent and distinct values in bounded memory
// Chopstix (OSDI 2008): about frequent values without a counter for each, however many there are.
//   fay trace -f sketches -- sqlite3 :memory: "select count(*) from pragma_function_list"
from m in cluster.Function("libc!malloc")
group m by 1 into g
select new { calls = g.Count(), sizes = g.TopK(20, x => x.Arg(0)),
    callers = g.DistinctCount(x => x.Caller), shape = g.Histogram(x => x.Arg(0)) }
