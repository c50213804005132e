// Bytes that each process reads and writes
// By read, write, pread64 and pwrite64; not by copy_file_range (cp), sendfile, readv, send and their
// kin. Threads that have names of their own are rows of their own.
//   fay trace -f bytes-by-process --for 10s
//   fay trace -f bytes-by-process -- cp /etc/services /tmp/copy
from s in cluster.Syscall("*")
where (s.function == "read" || s.function == "pread64" || s.function == "write"
    || s.function == "pwrite64") && s.ReturnValue > 0
let read = s.function == "read" || s.function == "pread64" ? s.ReturnValue : 0
group new { s, read } by new { s.pid, s.comm } into g
orderby g.Sum(x => x.s.ReturnValue) descending
select new { g.Key, read = g.Sum(x => x.read), written = g.Sum(x => x.s.ReturnValue - x.read) }
take 20
