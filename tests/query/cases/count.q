cluster.Function("redis-server!call").Count()
