process("redis-server").Function("redis-server!call").Count();
