// Statements that MariaDB runs, and how long
//   fay trace -f mysql-queries --comm mariadbd --for 10s
from q in cluster.Return("mariadbd!mysql_parse")
group q by q.Arg(1).Text into g
orderby g.Sum(x => x.Duration) descending
select new { statement = g.Key, times = g.Count(), total = g.Sum(x => x.Duration) }
take 20
