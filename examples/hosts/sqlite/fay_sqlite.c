/* SPDX-License-Identifier: MIT */
/*
 * A loadable extension of SQLite: statements bring aggregates, native code that is checked and then
 * called directly.
 *
 *     SELECT fay_load('NAME', IMAGE)                the function NAME of an extension for rows.host
 *     SELECT fay_aggregate('NAME', value) FROM ...  what it returns for the last value
 *
 * An image that is refused is an error with the rule that it breaks. Each group has an instance of
 * its own. A name stays what it is until the connection is closed: a statement may load while an
 * aggregate is under way. docs/internals/hosts.md has the commands.
 */
#include <stdlib.h>
#include <string.h>

#include <sqlite3ext.h>

#include <fay/host/host.h>

SQLITE_EXTENSION_INIT1

#define AGGREGATES 64u
#define NAME 64u
#define IMAGE 65536   /* bytes: checking takes as long as they are many */
#define VALUE 1048576 /* as the interface says */

__asm__(".pushsection .rodata\n"
	"interface: .incbin \"rows.host\"\n"
	"interface_end: .popsection");
extern const char interface[] __attribute__((visibility("hidden")));
extern const char interface_end[] __attribute__((visibility("hidden")));

typedef int64_t step_function(const uint8_t *value, uint64_t size, void *state);

/* Of one connection. */
struct connection {
	struct fay_host *host;
	struct aggregate {
		char name[NAME];
		struct fay_loaded *loaded;
		step_function *step;
	} aggregates[AGGREGATES];
};

/* Of one group. */
struct group {
	const struct aggregate *aggregate;
	void *state;
	int64_t result;
};

/* The aggregate of this name, or the first place that is free; NULL: none is. */
static struct aggregate *find(struct connection *c, const char *name)
{
	struct aggregate *a = c->aggregates;

	while (a < c->aggregates + AGGREGATES && a->loaded && strcmp(a->name, name))
		a++;
	return a < c->aggregates + AGGREGATES ? a : NULL;
}

static void load(sqlite3_context *context, int count __attribute__((unused)),
		 sqlite3_value **values)
{
	struct connection *c = sqlite3_user_data(context);
	const char *name = (const char *)sqlite3_value_text(values[0]);
	const void *image = sqlite3_value_blob(values[1]);
	int size = sqlite3_value_bytes(values[1]);
	struct aggregate *a = name && strlen(name) < NAME ? find(c, name) : NULL;
	struct fay_loaded *loaded;
	struct fay_error error;

	if (!a || a->loaded || !image || size > IMAGE) {
		sqlite3_result_error(context,
				     !a          ? "too many aggregates, or no name of one"
				     : a->loaded ? "there is an aggregate of this name"
						 : "no image, or too large a one",
				     -1);
		return;
	}
	if (fay_host_load(c->host, image, (size_t)size, &loaded, &error)) {
		sqlite3_result_error(context, error.message, -1);
		return;
	}
	a->step = (step_function *)fay_loaded_entry(loaded, name);
	if (!a->step) {
		fay_host_unload(loaded);
		sqlite3_result_error(context, "the image has no function of this name", -1);
		return;
	}
	strcpy(a->name, name);
	a->loaded = loaded;
	sqlite3_result_text(context, name, -1, SQLITE_TRANSIENT);
}

static void step(sqlite3_context *context, int count __attribute__((unused)),
		 sqlite3_value **values)
{
	struct group *g = sqlite3_aggregate_context(context, sizeof(*g)); /* zero at first */
	const void *value = sqlite3_value_blob(values[1]);
	int size = sqlite3_value_bytes(values[1]);

	if (g && !g->state) {
		const char *name = (const char *)sqlite3_value_text(values[0]);

		g->aggregate = name ? find(sqlite3_user_data(context), name) : NULL;
		if (!g->aggregate || !g->aggregate->loaded) {
			sqlite3_result_error(context, "no such aggregate", -1);
			return;
		}
		g->state = fay_loaded_instance(g->aggregate->loaded);
	}
	if (!g || !g->state)
		sqlite3_result_error_nomem(context);
	else if (size >= VALUE)
		sqlite3_result_error_toobig(context);
	else
		g->result = g->aggregate->step(value ? value : "", (uint64_t)size, g->state);
}

static void final(sqlite3_context *context)
{
	struct group *g = sqlite3_aggregate_context(context, 0);

	if (!g || !g->state)
		return; /* no values: NULL */
	sqlite3_result_int64(context, g->result);
	fay_instance_release(g->state);
}

static void forget(void *of)
{
	struct connection *c = of;

	for (unsigned i = 0; i < AGGREGATES; i++)
		fay_host_unload(c->aggregates[i].loaded);
	fay_host_close(c->host);
	free(c);
}

int sqlite3_faysqlite_init(sqlite3 *db, char **message, const sqlite3_api_routines *api);
int sqlite3_faysqlite_init(sqlite3 *db, char **message, const sqlite3_api_routines *api)
{
	struct connection *c = calloc(1, sizeof(*c));
	struct fay_error error;
	int result;

	SQLITE_EXTENSION_INIT2(api);
	if (!c)
		return SQLITE_NOMEM;
	if (fay_host_open(interface, (size_t)(interface_end - interface), &c->host, &error)) {
		*message = sqlite3_mprintf("rows.host:%s", error.message);
		free(c);
		return SQLITE_ERROR;
	}
	/* not for views and triggers, which another may have written */
	result = sqlite3_create_function_v2(db, "fay_load", 2, SQLITE_UTF8 | SQLITE_DIRECTONLY, c,
					    load, NULL, NULL, forget);
	if (result)
		return result; /* c was forgotten */
	return sqlite3_create_function_v2(db, "fay_aggregate", 2, SQLITE_UTF8, c, NULL, step, final,
					  NULL);
}
