// How long calls of a function take
//   fay trace -f funclatency -- wc -l /etc/hostname
//   fay trace -f funclatency 'redis-server!call' --comm redis-server --for 10s
param function = "libc!read"
cluster.Return("$function").Histogram(r => r.Duration)
