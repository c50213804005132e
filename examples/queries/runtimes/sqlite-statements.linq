// Statements that SQLite prepares
//   fay trace -f sqlite-statements -- sqlite3 :memory: 'select 1'
from s in cluster.Function("libsqlite3!sqlite3_prepare_v*")
group s by s.Arg(1).Text into g
orderby g.Count() descending
select new { statement = g.Key, times = g.Count() }
