/* SPDX-License-Identifier: MIT */
/*
 * A redis module: clients send filters, native code that redis checks and then calls directly.
 *
 *     FAY.LOAD NAME IMAGE         the function NAME of an extension for values.host
 *     FAY.FILTER NAME KEY...      those of the keys whose values the function accepts
 *
 * An image that is refused is answered with the rule that it breaks. docs/internals/hosts.md has
 * the commands. redis calls modules in one thread, and no value changes while a command runs.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fay/host/host.h>

#include "redis.h"

#define FILTERS 64u
#define NAME 64u
#define IMAGE 65536u   /* bytes: checking takes as long as they are many */
#define VALUE 1048576u /* as the interface says */

__asm__(".pushsection .rodata\n"
	"interface: .incbin \"values.host\"\n"
	"interface_end: .popsection");
extern const char interface[] __attribute__((visibility("hidden")));
extern const char interface_end[] __attribute__((visibility("hidden")));

typedef uint64_t filter_function(const uint8_t *value, uint64_t size);

static struct fay_host *host;
static struct filter {
	char name[NAME];
	struct fay_loaded *loaded;
	filter_function *accepts;
} filters[FILTERS];

/* The filter of this name, or the first place that is free; NULL: none is. */
static struct filter *find(const char *name)
{
	struct filter *f = filters;

	while (f < filters + FILTERS && f->loaded && strcmp(f->name, name))
		f++;
	return f < filters + FILTERS ? f : NULL;
}

static int refuse(struct redis_context *context, const char *why)
{
	char message[sizeof(((struct fay_error *)NULL)->message) + 8];

	snprintf(message, sizeof(message), "ERR %s", why);
	return redis.reply_error(context, message);
}

static int load(struct redis_context *context, struct redis_string **words, int count)
{
	struct fay_loaded *loaded;
	struct fay_error error;
	size_t size, length;
	const char *name, *image;
	struct filter *f;

	if (count != 3)
		return redis.wrong_count(context);
	name = redis.text(words[1], &length);
	image = redis.text(words[2], &size);
	f = length < NAME ? find(name) : NULL;
	if (!f || size > IMAGE)
		return refuse(context, !f ? "too many filters, or too long a name"
					  : "the image is too large");
	if (fay_host_load(host, image, size, &loaded, &error))
		return refuse(context, error.message);
	if (!fay_loaded_entry(loaded, name)) {
		fay_host_unload(loaded);
		return refuse(context, "the image has no function of this name");
	}
	fay_host_unload(f->loaded); /* an older one */
	snprintf(f->name, sizeof(f->name), "%s", name);
	f->loaded = loaded;
	f->accepts = (filter_function *)fay_loaded_entry(loaded, name);
	return redis.reply_done(context, "OK");
}

static bool accepts(struct redis_context *context, const struct filter *f,
		    struct redis_string *name)
{
	struct redis_key *key = redis.open(context, name, REDIS_READ);
	bool yes = false;

	if (key && redis.type(key) == REDIS_STRING) {
		size_t size;
		const char *value = redis.bytes(key, &size, REDIS_READ);

		yes = size < VALUE && f->accepts((const uint8_t *)value, size);
	}
	redis.close(key);
	return yes;
}

static int filter(struct redis_context *context, struct redis_string **words, int count)
{
	struct filter *f;
	long found = 0;

	if (count < 3)
		return redis.wrong_count(context);
	f = find(redis.text(words[1], NULL));
	if (!f || !f->loaded)
		return refuse(context, "no such filter");
	redis.reply_array(context, REDIS_LENGTH_LATER);
	for (int i = 2; i < count; i++)
		if (accepts(context, f, words[i])) {
			redis.reply_string(context, words[i]);
			found++;
		}
	return redis.array_length(context, found);
}

int RedisModule_OnLoad(struct redis_context *context, struct redis_string **words, int count);
int RedisModule_OnLoad(struct redis_context *context,
		       struct redis_string **words __attribute__((unused)),
		       int count __attribute__((unused)))
{
	struct fay_error error;

	if (redis_find(context))
		return REDIS_ERROR;
	redis.module(context, "fay", 1, REDIS_API);
	if (redis.command(context, "fay.load", load, "deny-oom", 0, 0, 0) ||
	    redis.command(context, "fay.filter", filter, "readonly", 2, -1, 1))
		return REDIS_ERROR;
	if (fay_host_open(interface, (size_t)(interface_end - interface), &host, &error)) {
		fprintf(stderr, "values.host:%s\n", error.message);
		return REDIS_ERROR;
	}
	return REDIS_OK;
}
