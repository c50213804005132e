// Pages that are read into the page cache, by program
// Pages of new files are among them.
//   fay trace -f cache-misses --for 10s
from p in cluster.Tracepoint("filemap:mm_filemap_add_to_page_cache")
group p by p.comm into g
orderby g.Count() descending
select new { program = g.Key, pages = g.Count() }
take 20
