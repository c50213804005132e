// How much programs send in one TLS write
//   fay trace -f tls-sizes --comm nginx --for 10s
cluster.Function("libssl!SSL_write").Histogram(w => w.Arg(2) & 0xffffffff)
