// What a function returns, and how often
//   fay trace -f results -- wc /etc/services
param function = "libc!read"
from r in cluster.Return("$function")
group r by r.ReturnValue into g
orderby g.Count() descending
select new { result = g.Key, calls = g.Count() }
take 20
