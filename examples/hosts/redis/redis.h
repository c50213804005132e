/* SPDX-License-Identifier: MIT */
/*
 * As much of redis' module interface (version 1) as fay_redis.c needs; Debian has no header of it.
 * A module finds the server's functions by name: the context begins with the function that does so.
 */
#ifndef FAY_EXAMPLE_REDIS_H
#define FAY_EXAMPLE_REDIS_H

#include <stddef.h>

enum { REDIS_OK = 0, REDIS_ERROR = 1 };
enum { REDIS_API = 1, REDIS_READ = 1, REDIS_STRING = 1, REDIS_LENGTH_LATER = -1 };

struct redis_context {
	int (*find)(const char *name, void *function);
};
struct redis_string;
struct redis_key;

typedef int redis_command(struct redis_context *, struct redis_string **words, int count);

static struct {
	void (*module)(struct redis_context *, const char *name, int version, int api);
	int (*command)(struct redis_context *, const char *name, redis_command *function,
		       const char *flags, int first_key, int last_key, int step);
	const char *(*text)(const struct redis_string *, size_t *size);
	struct redis_key *(*open)(struct redis_context *, struct redis_string *name, int mode);
	int (*type)(struct redis_key *);
	char *(*bytes)(struct redis_key *, size_t *size, int mode);
	void (*close)(struct redis_key *);
	int (*wrong_count)(struct redis_context *);
	int (*reply_error)(struct redis_context *, const char *message);
	int (*reply_done)(struct redis_context *, const char *message);
	int (*reply_array)(struct redis_context *, long count);
	int (*array_length)(struct redis_context *, long count);
	int (*reply_string)(struct redis_context *, struct redis_string *);
} redis;

static int redis_find(struct redis_context *context)
{
	static const struct {
		const char *name;
		void *function;
	} wanted[] = {
		{ "RedisModule_SetModuleAttribs", &redis.module },
		{ "RedisModule_CreateCommand", &redis.command },
		{ "RedisModule_StringPtrLen", &redis.text },
		{ "RedisModule_OpenKey", &redis.open },
		{ "RedisModule_KeyType", &redis.type },
		{ "RedisModule_StringDMA", &redis.bytes },
		{ "RedisModule_CloseKey", &redis.close },
		{ "RedisModule_WrongArity", &redis.wrong_count },
		{ "RedisModule_ReplyWithError", &redis.reply_error },
		{ "RedisModule_ReplyWithSimpleString", &redis.reply_done },
		{ "RedisModule_ReplyWithArray", &redis.reply_array },
		{ "RedisModule_ReplySetArrayLength", &redis.array_length },
		{ "RedisModule_ReplyWithString", &redis.reply_string },
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (context->find(wanted[i].name, wanted[i].function))
			return REDIS_ERROR;
	return REDIS_OK;
}

#endif
