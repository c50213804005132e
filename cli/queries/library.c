/* SPDX-License-Identifier: MIT */
/* The library of examples: share/fay/queries beside the folder that fay is installed in, or
 * examples/queries of the source tree that it was built in. */
#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fay/query.h"

#include "queries.h"

#define EXAMPLES_MAX 1024u
#define TEXT_MAX 65536u
#define SUFFIX ".linq"

static int find_folder(char folder[PATH_MAX], struct fay_error *error)
{
	static const char *const places[] = { "../share/fay/queries", "../../examples/queries" };
	char exe[PATH_MAX] = "", *slash;
	ssize_t length = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (length > 0 && (slash = strrchr(exe, '/')))
		*slash = 0;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int written = snprintf(folder, PATH_MAX, "%s/%s", exe, places[i]);
		if (written < PATH_MAX && !access(folder, R_OK | X_OK))
			return FAY_OK;
	}
	return fay_error_set(error, FAY_E_REFUSED,
			     "the examples are neither in %s/%s nor in %s/%s; the package fay "
			     "brings them",
			     exe, places[0], exe, places[1]);
}

/* The first line's comment, apart. */
static char *title_of(const char *text)
{
	text += strncmp(text, "//", 2) ? 0 : 2;
	text += strspn(text, " ");
	return strndup(text, strcspn(text, "\n"));
}

static int read_example(const FTSENT *entry, struct fay_example *example, struct fay_error *error)
{
	size_t name = entry->fts_namelen - strlen(SUFFIX);
	snprintf(example->topic, sizeof(example->topic), "%s", entry->fts_parent->fts_name);
	snprintf(example->name, sizeof(example->name), "%.*s", (int)name, entry->fts_name);
	snprintf(example->path, sizeof(example->path), "%s", entry->fts_path);
	FILE *file = fopen(example->path, "re");
	if (!file || !(example->text = calloc(TEXT_MAX + 1, 1))) {
		fay_error_set(error, FAY_E_REFUSED, "cannot read '%s': %s", example->path,
			      strerror(errno));
		if (file)
			fclose(file);
		return error->code;
	}
	size_t size = fread(example->text, 1, TEXT_MAX, file);
	fclose(file);
	char *text = realloc(example->text, size + 1);
	example->text = text ? text : example->text;
	if (!(example->title = title_of(example->text)))
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	return FAY_OK;
}

static int compare(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static bool is_example(const FTSENT *entry)
{
	size_t length = entry->fts_namelen, suffix = strlen(SUFFIX);
	return entry->fts_info == FTS_F && entry->fts_level == 2 && length > suffix &&
	       !strcmp(entry->fts_name + length - suffix, SUFFIX);
}

static int read_folder(FTS *walk, struct fay_examples *examples, struct fay_error *error)
{
	for (FTSENT *entry; (entry = fts_read(walk)) && examples->count < EXAMPLES_MAX;) {
		if (!is_example(entry))
			continue;
		struct fay_example *example = &examples->items[examples->count++];
		if (read_example(entry, example, error))
			return error->code;
	}
	return FAY_OK;
}

int fay_examples_read(struct fay_examples *examples, struct fay_error *error)
{
	char folder[PATH_MAX];
	memset(examples, 0, sizeof(*examples));
	if (find_folder(folder, error))
		return error->code;
	char *folders[] = { folder, NULL };
	examples->items = calloc(EXAMPLES_MAX, sizeof(*examples->items));
	FTS *walk = examples->items
			    ? fts_open(folders, FTS_COMFOLLOW | FTS_PHYSICAL | FTS_NOCHDIR, compare)
			    : NULL;
	if (!walk) {
		fay_examples_deinit(examples);
		return fay_error_set(error, FAY_E_LIMIT, "cannot read '%s': %s", folder,
				     strerror(errno));
	}
	int result = read_folder(walk, examples, error);
	fts_close(walk);
	if (result)
		fay_examples_deinit(examples);
	return result;
}

void fay_examples_deinit(struct fay_examples *examples)
{
	for (size_t i = 0; i < examples->count; i++) {
		free(examples->items[i].text);
		free(examples->items[i].title);
	}
	free(examples->items);
	memset(examples, 0, sizeof(*examples));
}

const struct fay_example *fay_examples_find(const struct fay_examples *examples, const char *name)
{
	for (size_t i = 0; i < examples->count; i++)
		if (!strcmp(examples->items[i].name, name))
			return &examples->items[i];
	return NULL;
}

const char *fay_examples_suggest(const struct fay_examples *examples, const char *name)
{
	const char *names[EXAMPLES_MAX];
	for (size_t i = 0; i < examples->count; i++)
		names[i] = examples->items[i].name;
	return fay_query_suggest(name, names, examples->count);
}
