from io in cluster.Function("libc!read")
group io by io.tid into g select new { h0 = g.Histogram(x => x.Arg(0) + 0), h1 = g.Histogram(x => x.Arg(0) + 1), h2 = g.Histogram(x => x.Arg(0) + 2), h3 = g.Histogram(x => x.Arg(0) + 3), h4 = g.Histogram(x => x.Arg(0) + 4), h5 = g.Histogram(x => x.Arg(0) + 5), h6 = g.Histogram(x => x.Arg(0) + 6), h7 = g.Histogram(x => x.Arg(0) + 7) }
