// Code that throws C++ exceptions
//   fay trace -f exceptions --comm mariadbd --for 10s
from e in cluster.Function("libstdc++!__cxa_throw")
group e by new { e.comm, e.Caller } into g
orderby g.Count() descending
select new { g.Key, thrown = g.Count() }
