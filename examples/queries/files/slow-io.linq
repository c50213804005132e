// Reads and writes that take long
//   fay trace -f slow-io --for 10s
//   fay trace -f slow-io least=1ms --comm postgres
param least = 10ms
from s in cluster.Syscall("*")
where s.Duration >= $least && (s.function == "read" || s.function == "pread64"
    || s.function == "write" || s.function == "pwrite64")
select new { s.time, s.pid, s.comm, s.function, fd = s.Arg(0), bytes = s.ReturnValue,
    took = s.Duration }
