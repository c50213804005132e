// Sketches (Chopstix): about frequent values without a counter for each. Bounded memory a thread, however many values there are.
//   fay trace "$(cat examples/queries/sketches.linq)" -- sqlite3 :memory: "select count(*) from pragma_function_list"
from m in cluster.Function("libc!malloc")
group m by 1 into g
select new { calls = g.Count(), sizes = g.TopK(20, x => x.Arg(0)), callers = g.DistinctCount(x => x.Caller), shape = g.Histogram(x => x.Arg(0)) }
