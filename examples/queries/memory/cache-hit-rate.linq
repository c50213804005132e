// How often the page cache has what programs read
// `missed` is what was added, by reading ahead or writing, too. Of a program that adds more than it
// reads, such as one that writes, no rate is known, and it is left out. A large folio, of several
// pages, counts once on either side; cache-misses counts pages.
// The tracepoint mm_filemap_get_pages is newer than Debian 12's own kernel.
//   fay trace -f cache-hit-rate --for 10s
from p in cluster.Tracepoint("filemap:mm_filemap_*")
where p.function == "mm_filemap_get_pages" || p.function == "mm_filemap_add_to_page_cache"
group p by p.comm into g
let reads = g.Count(x => x.function == "mm_filemap_get_pages")
where reads > 0
let missed = g.Count() - reads
where missed <= reads
orderby reads descending
select new { program = g.Key, reads, missed, percent = 100 * (reads - missed) / reads }
take 20
