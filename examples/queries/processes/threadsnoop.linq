// Code that starts threads, and what these run
//   fay trace -f threadsnoop --comm java --for 10s
//   fay trace -f threadsnoop -- /usr/bin/python3 -c "import threading; threading.Thread().start()"
from p in cluster.Function("libc!pthread_create")
group p by new { p.comm, p.Caller, runs = p.Arg(2).Symbol } into g
orderby g.Count() descending
select new { g.Key, threads = g.Count() }
