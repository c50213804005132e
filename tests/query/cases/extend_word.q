extend "functions.c" process("redis-server").Function("a!b").Sum(x => process(x.tid))
