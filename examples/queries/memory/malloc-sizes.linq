// Sizes that a program allocates
//   fay trace -f malloc-sizes --comm redis-server --for 10s
//   fay trace -f malloc-sizes -- ls -l /etc
param function = "libc!malloc"
cluster.Function("$function").Histogram(m => m.Arg(0))
