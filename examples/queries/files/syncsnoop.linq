// Calls that wait until data is on disk
//   fay trace -f syncsnoop --for 10s
//   fay trace -f syncsnoop -- sync -d /etc
from s in cluster.Syscall("*sync*")
select new { s.time, s.pid, s.comm, s.function, took = s.Duration }
