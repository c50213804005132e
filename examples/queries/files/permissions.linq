// Changes of permissions of files
//   fay trace -f permissions --for 10s
//   fay trace -f permissions --follow -- sh -c "touch /tmp/f; chmod 600 /tmp/f"
from c in cluster.Syscall("*chmod*")
select new { c.time, c.pid, c.comm, c.function, c.filename, c.mode, c.Error }
