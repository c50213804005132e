// System calls that take long, one by one
//   fay trace -f slow-syscalls --for 10s
//   fay trace -f slow-syscalls least=50ms call="*sync" --for 1m
param least = 10ms
param call = "*"
from s in cluster.Syscall("$call")
where s.Duration >= $least
select new { s.time, s.pid, s.comm, s.function, took = s.Duration, result = s.ReturnValue }
