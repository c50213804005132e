// How a function's latency changes over time
//   fay trace -f func-heat-map 'redis-server!call' --comm redis-server --for 20s
//   fay trace -f func-heat-map -- du -s /usr/share/doc
param function = "libc!malloc"
cluster.Return("$function").Tumbling(1s).Histogram(r => r.Duration)
