cluster
