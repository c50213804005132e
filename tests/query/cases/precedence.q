cluster.Function("a!b").Sum(x => (x.tid + 1) * 2 - (3 - x.pid) % 7 ^ ~x.cpu | -(x.tid & 3) << (1 >>> x.cpu))
