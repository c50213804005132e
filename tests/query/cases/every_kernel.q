cluster.Syscall("write").Every(10).GroupBy(w => w.Arg(0)).Select(g => new { g.Key, top = g.TopK(3, w => w.Arg(2)) })
