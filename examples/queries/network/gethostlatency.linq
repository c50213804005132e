// How long names take to be resolved
//   fay trace -f gethostlatency --comm curl --wait --for 1m
//   fay trace -f gethostlatency -- getent ahosts localhost
from r in cluster.Return("libc!getaddrinfo")
select new { r.time, r.pid, r.comm, name = r.Arg(0).Text, took = r.Duration,
    error = r.ReturnValue << 32 >> 32 }
