/* SPDX-License-Identifier: MIT */
/* Reading the log: what it tells, and whether it is as it was written. Offline: it takes the file
 * and FILE.head, and nothing of the machine that wrote them. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log_parts.h"

#define HEADS 2 /* that must be in the log: what FILE.head has, and what somebody noted */

static FILE *open_log(const char *path, struct fay_error *error)
{
	struct stat stat;
	int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	FILE *stream = NULL;
	if (file < 0)
		fay_error_set(error, FAY_E_USAGE, "cannot open '%s': %s", path, strerror(errno));
	else if (fstat(file, &stat) || !S_ISREG(stat.st_mode))
		fay_error_set(error, FAY_E_USAGE, "'%s' is not a regular file", path);
	else if (!(stream = fdopen(file, "r")))
		fay_error_set(error, FAY_E_LIMIT, "out of memory");
	if (file >= 0 && !stream)
		close(file);
	return stream;
}

/* What is read, and what is expected next. */
struct reading {
	struct fay_log_state state;
	uint64_t line; /* its number in the file, from 1 */
	uint64_t
		no_entry; /* that of a line which is none, since the last entry; 0: there is none */
	uint64_t faults;
	const struct fay_log_reader *reader;
};

static void __attribute__((format(printf, 3, 4))) tell(struct reading *reading, uint64_t line,
						       const char *format, ...)
{
	char what[256];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	reading->faults++;
	if (reading->reader->fault)
		reading->reader->fault(reading->reader->context, line, what);
}

/* Whether the entry follows from what stands before it. */
static void check(struct reading *reading, const struct fay_log_line *entry,
		  const uint8_t before[FAY_LOG_HASH])
{
	uint64_t due = reading->state.number + 1;
	if (entry->number != due)
		tell(reading, reading->line,
		     "entry %" PRIu64 " where entry %" PRIu64
		     " was due: lines are missing, doubled or out of order",
		     entry->number, due);
	else if (memcmp(entry->previous, before, FAY_LOG_HASH) != 0 && reading->line == 1)
		tell(reading, reading->line, "the first entry does not begin a log: edited");
	else if (memcmp(entry->previous, before, FAY_LOG_HASH) != 0)
		tell(reading, reading->line,
		     "does not follow from line %" PRIu64 ": one of the two was edited",
		     reading->line - 1);
	else if (reading->no_entry)
		reading->state.torn++; /* it was there when this entry was written */
}

static void take_line(struct reading *reading, char *text, size_t size)
{
	struct fay_log_line entry;
	struct fay_log_state *state = &reading->state;
	uint8_t before[FAY_LOG_HASH];
	memcpy(before, state->hash, sizeof(before));
	char *copy = size && text[size - 1] == '\n' ? strndup(text, size - 1) : NULL;
	if (!copy || strlen(copy) != size - 1 || !fay_log_parse(copy, &entry)) {
		fay_log_chain(state, text, size);
		reading->no_entry = reading->no_entry ? reading->no_entry : reading->line;
		free(copy);
		return;
	}
	check(reading, &entry, before);
	memcpy(state->hash, entry.previous, sizeof(state->hash)); /* as its writer saw it */
	fay_log_chain(state, text, size);
	state->number = entry.number;
	reading->no_entry = 0;
	if (!*state->first)
		snprintf(state->first, sizeof(state->first), "%s", entry.time);
	snprintf(state->last, sizeof(state->last), "%s", entry.time);
	if (reading->reader->entry)
		reading->reader->entry(reading->reader->context, &entry);
	free(copy);
}

/* Of what must be in the log. */
static void compare(struct reading *reading, const struct fay_log_state *head, bool found,
		    const char *of)
{
	if (reading->state.number < head->number)
		tell(reading, reading->line,
		     "the log ends with entry %" PRIu64 ", and %s has entry %" PRIu64
		     ": entries are missing at the end",
		     reading->state.number, of, head->number);
	else if (!found)
		tell(reading, reading->line,
		     "entry %" PRIu64 " is not what %s has: edited, or another log", head->number,
		     of);
}

/* FILE.head. False: after a message. */
static bool read_head(const char *path, struct fay_log_state *head, struct fay_error *error)
{
	char *name, text[FAY_LOG_HEAD_SIZE + 1];
	FILE *file = NULL;
	if (asprintf(&name, "%s.head", path) < 0)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory"), false;
	file = open_log(name, error);
	size_t got = file ? fread(text, 1, sizeof(text), file) : 0;
	bool ok = file && fay_log_head_read(text, got, head);
	if (file && !ok)
		fay_error_set(error, FAY_E_REFUSED, "'%s' is damaged", name);
	if (file)
		fclose(file);
	free(name);
	return ok;
}

static bool is_at(const struct fay_log_state *state, const struct fay_log_state *head)
{
	return state->number == head->number && (!head->size || state->size == head->size) &&
	       !memcmp(state->hash, head->hash, FAY_LOG_HASH);
}

/* One line, with its end if it has one; its size, 0 at the file's end. */
static size_t read_line(FILE *file, char text[FAY_LOG_LINE_MAX + 1])
{
	size_t size = 0;
	for (int c = 0; size <= FAY_LOG_LINE_MAX && c != '\n' && (c = getc(file)) != EOF;)
		text[size++] = (char)c;
	return size;
}

/* All lines. found[i]: whether heads[i] is in them. */
static void read_lines(FILE *file, struct reading *reading, const struct fay_log_state *heads,
		       bool *found)
{
	char text[FAY_LOG_LINE_MAX + 1];
	size_t size;
	while ((size = read_line(file, text))) {
		reading->line++;
		if (size > FAY_LOG_LINE_MAX) {
			tell(reading, reading->line,
			     "longer than any entry: nothing behind it was read");
			reading->no_entry = 0;
			return;
		}
		take_line(reading, text, size);
		for (size_t i = 0; i < HEADS; i++)
			found[i] |= is_at(&reading->state, &heads[i]);
		if (text[size - 1] == '\n')
			continue;
		tell(reading, reading->line, "ends within a line: cut, or not all was written");
		reading->no_entry = 0;
	}
	if (reading->no_entry)
		tell(reading, reading->no_entry, "is no entry, and no entry stands behind it");
}

int fay_log_read(const char *path, const struct fay_log_reader *reader, struct fay_log_state *state,
		 struct fay_error *error)
{
	struct reading reading = { .reader = reader };
	struct fay_log_state heads[HEADS] = { 0 };
	struct fay_error why = { 0 };
	bool found[HEADS] = { 0 }, known = !reader->checks || reader->noted;
	if (reader->noted)
		heads[1] = *reader->noted;
	if (reader->checks && read_head(path, &heads[0], &why))
		known = true;
	FILE *file = open_log(path, error);
	if (!file)
		return error->code;
	read_lines(file, &reading, heads, found);
	bool failed = ferror(file);
	fclose(file);
	if (failed)
		return fay_error_set(error, FAY_E_INTERNAL, "cannot read '%s'", path);
	if (!known)
		tell(&reading, reading.line, "%s: entries may be missing at the end", why.message);
	if (heads[0].number)
		compare(&reading, &heads[0], found[0], "FILE.head");
	if (reader->noted)
		compare(&reading, &heads[1], found[1], "--head");
	*state = reading.state;
	return reading.faults
		       ? fay_error_set(error, FAY_E_REFUSED, "'%s' is not as it was written", path)
		       : FAY_OK;
}
