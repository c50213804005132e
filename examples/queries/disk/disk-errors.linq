// Requests that a disk could not do
//   fay trace -f disk-errors --for 1h
from e in cluster.Tracepoint("block:block_rq_error")
select new { e.time, e.comm, error = e.error, bytes = e.nr_bytes }
