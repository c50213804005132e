// Pages that are read into the page cache, by program
// Pages of new files are among them. A folio of several pages has its number of them in its second
// page; kernels before 6.6 do not, and there each folio counts as one page.
//   fay trace -f cache-misses --for 10s
from p in cluster.Tracepoint("filemap:mm_filemap_add_to_page_cache")
let large = p.folio._head_1 == p.folio + 1
let pages = large ? 1 << (p.folio._flags_1 & 255) : 1
group new { pages } by p.comm into g
orderby g.Sum(x => x.pages) descending
select new { program = g.Key, pages = g.Sum(x => x.pages) }
take 20
