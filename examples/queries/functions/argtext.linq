// The texts that a function is called with
//   fay trace -f argtext -- ls -l /etc
//   fay trace -f argtext 'libc!fopen' -- getent passwd root
param function = "libc!getenv"
param argument = 0 // 0 to 5
from f in cluster.Function("$function")
group f by f.Arg($argument).Text into g
orderby g.Count() descending
select new { text = g.Key, calls = g.Count() }
take 20
