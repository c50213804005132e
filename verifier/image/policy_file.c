/* SPDX-License-Identifier: MIT */
/*
 * Policy files, of which policy.c knows the keys.
 *
 * A policy file has one `name = value` a line; '#' begins a comment. A name that is not known, a
 * value that does not parse, or a name given twice is an error with its line and column: a misspelt
 * limit must not silently be no limit.
 *
 * What a file includes holds as if it stood in the file; of a key that several files have the
 * stricter value counts, so that no include loosens what another file says. A file that
 * several include is read once; one that includes itself, by whatever way, is refused.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "policy.h"
#include "policy_parts.h"
#include "sha256.h"

#define LINE_MAX_BYTES 1024
#define VALUE_MAX_BYTES 128 /* of a value that has a name */
#define NAMED_MAX 32u
#define INCLUDES_MAX 16u
#define DIGEST_BYTES 32

/* Values that have a name: `$NAME = VALUE`, and then `$NAME` instead of a value. */
struct named {
	size_t count;
	struct {
		char name[32], value[VALUE_MAX_BYTES];
	} at[NAMED_MAX];
};

/* A file that is read. */
struct reading {
	const char *path;
	struct fay_policy *policy;
	const struct fay_policy_keys *more; /* or NULL */
	bool seen[FAY_POLICY_NAMES], more_seen[FAY_POLICY_KEYS_MAX];
	struct named *named;
	char *message;
	size_t message_size;
};

static char *trim(char *text)
{
	text += strspn(text, " \t\r\n");
	size_t length = strlen(text);
	while (length && strchr(" \t\r\n", text[length - 1]))
		text[--length] = 0;
	return text;
}

/* Cuts a line into name and value. False: it has neither; *value NULL: there is no `=`. */
static bool split(char *line, char **name, char **value)
{
	line[strcspn(line, "#")] = 0;
	*name = trim(line);
	*value = strchr(*name, '=');
	if (!**name)
		return false;
	if (*value) {
		*(*value)++ = 0;
		*name = trim(*name);
		*value = trim(*value);
	}
	return true;
}

static const char *define(const char *name, const char *value, struct named *named)
{
	if (!name[1] || name[1 + strspn(name + 1, "abcdefghijklmnopqrstuvwxyz_0123456789")] ||
	    strlen(name) >= sizeof(named->at[0].name))
		return "expected a name of small letters, such as `$short`";
	if (!*value || *value == '$' || strlen(value) >= sizeof(named->at[0].value))
		return "expected a value, of less than 128 bytes";
	for (size_t i = 0; i < named->count; i++)
		if (!strcmp(named->at[i].name, name))
			return "the name is given twice";
	if (named->count == NAMED_MAX)
		return "more than 32 names";
	strcpy(named->at[named->count].name, name);
	strcpy(named->at[named->count++].value, value);
	return NULL;
}

/* The value itself, or, in `copy`, what its name stands for; NULL: nothing. */
static char *value_of(char *value, const struct named *named, char copy[VALUE_MAX_BYTES])
{
	if (*value != '$')
		return value;
	for (size_t i = 0; i < named->count; i++)
		if (!strcmp(named->at[i].name, value))
			return strcpy(copy, named->at[i].value);
	return NULL;
}

static const char *read_more(struct reading *reading, const char *name, char *value,
			     const char **at)
{
	const struct fay_policy_keys *more = reading->more;

	*at = name;
	for (size_t i = 0; more && i < FAY_POLICY_KEYS_MAX && more->keys[i].name; i++) {
		if (strcmp(more->keys[i].name, name))
			continue;
		if (reading->more_seen[i])
			return "the name is given twice";
		reading->more_seen[i] = true;
		*at = value;
		return more->keys[i].read(value, more->context);
	}
	return "unknown name; docs/policy.md has them all";
}

/* NULL: fine. Otherwise what is wrong with the line; *at is where. */
static const char *read_line(char *line, struct reading *reading, void *context, const char **at)
{
	char copy[VALUE_MAX_BYTES], *name, *given, *value;
	const char *within, *wrong;

	(void)context;
	if (!split(line, &name, &given))
		return NULL;
	*at = name;
	if (!given)
		return "expected `name = value`";
	if (*name == '$')
		return define(name, given, reading->named);
	if (!strcmp(name, "include"))
		return NULL;
	value = value_of(given, reading->named, copy);
	*at = given;
	if (!value)
		return "no such name; a line `$name = value` before it defines one";
	size_t key = fay_policy_key(name);
	if (key == FAY_POLICY_NAMES) {
		wrong = read_more(reading, name, value, &within);
	} else if (reading->seen[key]) {
		within = name;
		wrong = "the name is given twice";
	} else {
		within = value;
		wrong = fay_policy_key_read(key, value, reading->policy, &within);
		reading->seen[key] = true;
	}
	if (value == given || within == name)
		*at = within; /* else it is in what the name stands for */
	return wrong;
}

/* "FILE:LINE:COLUMN: what", the line, a caret under the column. */
static int complain(const struct reading *reading, unsigned number_of, const char *line,
		    size_t column, const char *what)
{
	char *message = reading->message;
	size_t size = reading->message_size;
	int width = (int)strcspn(line, "\r\n"), printed;

	printed = snprintf(message, size, "%s:%u:%zu: %s\n  %.*s\n  ", reading->path, number_of,
			   column + 1, what, width, line);
	for (size_t i = 0; i <= column && printed >= 0 && (size_t)printed + 1 < size; i++)
		message[printed++] = i == column ? '^' : line[i] == '\t' ? '\t' : ' ';
	if (printed >= 0 && (size_t)printed < size)
		message[printed] = 0;
	for (char *c = message; *c; c++) /* the file's own bytes: nothing that steers a terminal */
		if ((unsigned char)*c < 0x20 && *c != '\n' && *c != '\t')
			*c = '?';
	return -1;
}

/* ---- whole files ---- */

/* A file's bytes; it is read once, since it may be a pipe. */
struct text {
	char path[PATH_MAX];
	char *bytes; /* to be freed */
	size_t size;
	dev_t device;
	ino_t inode;
	size_t by, next,
		end; /* who includes it; those that it includes and that are still to be read */
};

static int load(struct text *text, char *message, size_t message_size)
{
	FILE *file = fopen(text->path, "re");
	struct stat status = { 0 };
	const char *wrong = file && !fstat(fileno(file), &status) ? NULL : strerror(errno);

	text->device = status.st_dev;
	text->inode = status.st_ino;
	text->bytes = malloc(FAY_POLICY_FILE_MAX + 1);
	text->size = file && text->bytes ? fread(text->bytes, 1, FAY_POLICY_FILE_MAX + 1, file) : 0;
	if (!wrong && !text->bytes)
		wrong = "out of memory";
	else if (!wrong && ferror(file))
		wrong = "cannot read";
	else if (!wrong && text->size > FAY_POLICY_FILE_MAX)
		wrong = "larger than 64 KiB";
	else if (!wrong && memchr(text->bytes, 0, text->size))
		wrong = "not a policy: a policy is text";
	if (file)
		fclose(file);
	if (wrong)
		snprintf(message, message_size, "%s: %s", text->path, wrong);
	return wrong ? -1 : 0;
}

/* Calls for each line, which it may cut up; what that returns is wrong with it, at *at. */
static int each_line(const struct text *text, struct reading *reading, void *context,
		     const char *(*take)(char *line, struct reading *reading, void *context,
					 const char **at))
{
	char line[LINE_MAX_BYTES], copy[LINE_MAX_BYTES];
	FILE *file = text->size ? fmemopen(text->bytes, text->size, "r") : NULL;
	int result = 0;

	reading->path = text->path;
	for (unsigned number_of = 1; file && !result && fgets(line, sizeof(line), file);
	     number_of++) {
		const char *wrong, *at = line;

		strcpy(copy, line);
		wrong = !strchr(line, '\n') && !feof(file) ? "the line is too long"
							   : take(line, reading, context, &at);
		if (wrong)
			result = complain(reading, number_of, copy, (size_t)(at - line), wrong);
	}
	if (file)
		fclose(file);
	if (text->size && !file)
		snprintf(reading->message, reading->message_size, "%s: out of memory", text->path);
	return text->size && !file ? -1 : result;
}

/* ---- files that are included ---- */

/* A policy's own file, then those that are included, in the order in which that was found. */
struct texts {
	size_t count, current; /* the one whose lines are looked at */
	struct text at[1 + INCLUDES_MAX];
	size_t ordered, order[1 + INCLUDES_MAX]; /* each file once, behind all that it includes */
};

/* The path of an included file goes from where the including one is. */
static const char *add_include(char *line, struct reading *reading, void *context, const char **at)
{
	const char *slash = strrchr(reading->path, '/');
	struct texts *texts = context;
	char *name, *value;
	int folder;

	if (!split(line, &name, &value) || !value || strcmp(name, "include") != 0)
		return NULL;
	*at = value;
	if (texts->count == 1 + INCLUDES_MAX)
		return "more than 16 files are included";
	folder = *value == '/' || !slash ? 0 : (int)(slash - reading->path) + 1;
	if (!*value || snprintf(texts->at[texts->count].path, PATH_MAX, "%.*s%s", folder,
				reading->path, value) >= PATH_MAX)
		return "expected the path of a file";
	texts->at[texts->count++].by = texts->current;
	return NULL;
}

static void release(struct texts *texts)
{
	for (size_t i = 0; texts && i < texts->count; i++)
		free(texts->at[i].bytes);
	free(texts);
}

static bool is_same(const struct text *a, const struct text *b)
{
	return a->device == b->device && a->inode == b->inode;
}

static bool is_ordered(const struct texts *texts, const struct text *text)
{
	for (size_t i = 0; i < texts->ordered; i++)
		if (is_same(&texts->at[texts->order[i]], text))
			return true;
	return false;
}

/* "FILE includes itself: FILE <- WHO INCLUDES IT <- ... <- FILE"; -1. */
static int complain_of_circle(const struct texts *texts, size_t at, char *message,
			      size_t message_size)
{
	const struct text *last = &texts->at[at];
	size_t length;

	snprintf(message, message_size, "%s includes itself: %s", last->path, last->path);
	do {
		at = texts->at[at].by;
		length = strlen(message);
		snprintf(message + length, message_size - length, " <- %s", texts->at[at].path);
	} while (!is_same(&texts->at[at], last));
	return -1;
}

/* Loads the current file; what it includes is behind what is there. */
static int load_current(struct texts *texts, char *message, size_t message_size)
{
	struct text *text = &texts->at[texts->current];
	struct reading reading = { .message = message, .message_size = message_size };

	if (load(text, message, message_size))
		return -1;
	for (size_t i = texts->current; i != 0; i = texts->at[i].by)
		if (is_same(&texts->at[texts->at[i].by], text))
			return complain_of_circle(texts, texts->current, message, message_size);
	text->next = text->end = texts->count;
	if (is_ordered(texts, text))
		return 0;
	if (each_line(text, &reading, texts, add_include))
		return -1;
	text->end = texts->count;
	return 0;
}

/* What is included is read before what stands behind it, in whatever file that is. */
static int load_each(struct texts *texts, char *message, size_t message_size)
{
	if (load_current(texts, message, message_size))
		return -1;
	for (;;) {
		struct text *text = &texts->at[texts->current];

		if (text->next < text->end) {
			texts->current = text->next++;
			if (load_current(texts, message, message_size))
				return -1;
			continue;
		}
		if (!is_ordered(texts, text))
			texts->order[texts->ordered++] = texts->current;
		if (texts->current == 0)
			return 0;
		texts->current = text->by;
	}
}

/* NULL: after a message. */
static struct texts *load_all(const char *path, char *message, size_t message_size)
{
	struct texts *texts = calloc(1, sizeof(*texts));

	if (!texts || strlen(path) >= PATH_MAX) {
		snprintf(message, message_size, "%s: %s", path,
			 texts ? strerror(ENAMETOOLONG) : "out of memory");
		free(texts);
		return NULL;
	}
	strcpy(texts->at[texts->count++].path, path);
	if (!load_each(texts, message, message_size))
		return texts;
	release(texts);
	return NULL;
}

/* What the other policy says of the keys that its file has. */
static int join(struct reading *reading, struct fay_policy *to, bool *seen,
		const struct fay_policy *from, const bool *said)
{
	for (size_t i = 0; i < FAY_POLICY_NAMES; i++) {
		const char *wrong = said[i] ? fay_policy_key_join(i, to, from, seen[i]) : NULL;

		seen[i] |= said[i];
		if (!wrong)
			continue;
		snprintf(reading->message, reading->message_size, "%s: %s: %s", reading->path,
			 fay_policy_key_name(i), wrong);
		return -1;
	}
	return 0;
}

/* The included files first, so that their names are known; the policy's own is the last. */
static int read_texts(const struct texts *texts, struct reading *own)
{
	struct named named = { 0 };
	struct fay_policy all = { 0 };
	bool seen[FAY_POLICY_NAMES] = { 0 };

	own->named = &named;
	for (size_t i = 0; i + 1 < texts->ordered; i++) {
		struct fay_policy one;
		struct reading inner = { .policy = &one,
					 .named = &named,
					 .message = own->message,
					 .message_size = own->message_size };

		fay_policy_default(&one);
		if (each_line(&texts->at[texts->order[i]], &inner, NULL, read_line) ||
		    join(&inner, &all, seen, &one, inner.seen))
			return -1;
	}
	if (each_line(&texts->at[0], own, NULL, read_line))
		return -1;
	return join(own, own->policy, own->seen, &all, seen);
}

/* ---- what identifies a policy ---- */

static void hash(const struct texts *texts, uint8_t digest[DIGEST_BYTES])
{
	uint8_t all[1 + INCLUDES_MAX][DIGEST_BYTES];

	for (size_t i = 0; i < texts->count; i++)
		fay_sha256(texts->at[i].bytes, texts->at[i].size, all[i]);
	if (texts->count == 1)
		memcpy(digest, all[0], DIGEST_BYTES);
	else
		fay_sha256(all, texts->count * DIGEST_BYTES, digest);
}

int fay_policy_digest(const char *path, uint8_t digest[DIGEST_BYTES], char *message,
		      size_t message_size)
{
	struct texts *texts = load_all(path, message, message_size);

	if (!texts)
		return -1;
	hash(texts, digest);
	release(texts);
	return 0;
}

static int read_policy(const char *path, struct fay_policy *policy,
		       const struct fay_policy_keys *more, uint8_t *digest, char *message,
		       size_t message_size)
{
	struct reading reading = {
		.policy = policy, .more = more, .message = message, .message_size = message_size
	};
	struct texts *texts = load_all(path, message, message_size);
	int result = texts ? read_texts(texts, &reading) : -1;

	if (!result && digest)
		hash(texts, digest);
	release(texts);
	return result;
}

int fay_policy_read(const char *path, struct fay_policy *policy, char *message, size_t message_size)
{
	fay_policy_default(policy);
	return read_policy(path, policy, NULL, NULL, message, message_size);
}

int fay_policy_read_with(const char *path, struct fay_policy *policy,
			 const struct fay_policy_keys *more, char *message, size_t message_size)
{
	return read_policy(path, policy, more, NULL, message, message_size);
}

int fay_policy_read_named(const char *path, struct fay_policy *policy, uint8_t digest[DIGEST_BYTES],
			  char *message, size_t message_size)
{
	fay_policy_default(policy);
	return read_policy(path, policy, NULL, digest, message, message_size);
}
