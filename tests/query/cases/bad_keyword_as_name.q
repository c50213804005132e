from where in cluster.Function("a!b") select 1
