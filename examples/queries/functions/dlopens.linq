// Libraries that programs load while they run
//   fay trace -f dlopens -- /usr/bin/python3 -c 'import sqlite3'
from d in cluster.Return("libc!dlopen")
select new { d.time, d.comm, library = d.Arg(0).Text, took = d.Duration, d.Caller }
