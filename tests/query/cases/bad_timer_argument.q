cluster.Timer(10ms).Count(t => t.Arg(0) > 1)
