// How an argument of a function is distributed
//   fay trace -f argdist -- ls -l /etc
//   fay trace -f argdist 'libc!read' 2 --comm redis-server --for 10s
param function = "libc!malloc"
param argument = 0 // 0 to 5
cluster.Function("$function").Histogram(f => f.Arg($argument))
