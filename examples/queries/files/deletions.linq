// Files that are deleted, and by whom
//   fay trace -f deletions --for 10s
//   fay trace -f deletions --follow -- sh -c "touch /tmp/gone; rm /tmp/gone"
from u in cluster.Syscall("unlink*")
select new { u.time, u.pid, u.comm, u.pathname, u.Error }
