// Files that are renamed
//   fay trace -f renames --for 10s
from r in cluster.Syscall("rename*")
select new { r.time, r.pid, r.comm, before = r.oldname, after = r.newname, r.Error }
