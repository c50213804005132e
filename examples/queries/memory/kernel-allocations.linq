// Programs for which the kernel allocates memory
//   fay trace -f kernel-allocations --for 10s
from k in cluster.Tracepoint("kmem:kmalloc")
group k by k.comm into g
orderby g.Sum(x => x.bytes_alloc) descending
select new { program = g.Key, times = g.Count(), bytes = g.Sum(x => x.bytes_alloc) }
take 20
