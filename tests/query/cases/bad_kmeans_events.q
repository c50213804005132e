cluster.Function("a!b").KMeans(2, x => x.tid, x => x.cpu, x => 1)
