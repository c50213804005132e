process(0).Function("redis-server!call").Count();
