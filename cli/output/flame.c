/* SPDX-License-Identifier: MIT */
/*
 * A flame graph: a page (flame.html) that needs no other file, with the query and the folded stacks
 * in it. Stacks are written as what they do not share with the one before, by the names' numbers,
 * so that a browser has a million of them in a moment:
 *
 *     SHARED NUMBER NUMBER...:COUNT:BEFORE
 *
 * BEFORE is the count in the folded stacks that it is compared with.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output_parts.h"

#include "flame.inc"

struct line {
	char *path; /* ends in the text itself */
	uint64_t now, before;
};
struct lines {
	struct line *items;
	size_t count, room;
};
/* What names have which number, by open addressing: 0 is none, else the number and one. */
struct names {
	const char **items;
	uint32_t *index;
	size_t count, room, size; /* size: of the index, a power of two */
};

void fay_write_html(FILE *out, const char *text)
{
	for (; *text; text++) {
		const char *escape = *text == '&' ? "&amp;" : *text == '<' ? "&lt;" : NULL;
		if (escape)
			fputs(escape, out);
		else
			fputc(*text, out);
	}
}

static bool add_line(struct lines *lines, char *path, uint64_t now, uint64_t before)
{
	if (lines->count == lines->room) {
		size_t room = lines->room ? 2 * lines->room : 1024;
		struct line *items = realloc(lines->items, room * sizeof(*items));
		if (!items)
			return false;
		lines->items = items;
		lines->room = room;
	}
	lines->items[lines->count++] = (struct line){ path, now, before };
	return true;
}

/* Lines without a count behind the last space are none. The text is cut into pieces. */
static bool read_folded(struct lines *lines, char *text, bool before)
{
	for (char *line = text, *next; line && *line; line = next) {
		char *end = strchr(line, '\n'), *rest;
		next = end ? end + 1 : NULL;
		if (end)
			*end = 0;
		char *space = strrchr(line, ' ');
		uint64_t count = space ? strtoull(space + 1, &rest, 10) : 0;
		if (!count || *rest || space == line)
			continue;
		*space = 0;
		if (!add_line(lines, line, before ? 0 : count, before ? count : 0))
			return false;
	}
	return true;
}

static int compare_lines(const void *left, const void *right)
{
	return strcmp(((const struct line *)left)->path, ((const struct line *)right)->path);
}

/* In order, so that what two neighbours share is at their beginning; each path once. */
static void arrange(struct lines *lines)
{
	size_t kept = 0;
	if (lines->count)
		qsort(lines->items, lines->count, sizeof(*lines->items), compare_lines);
	for (size_t i = 0; i < lines->count; i++) {
		struct line *last = kept ? &lines->items[kept - 1] : NULL;
		if (last && !strcmp(last->path, lines->items[i].path)) {
			last->now += lines->items[i].now;
			last->before += lines->items[i].before;
		} else {
			lines->items[kept++] = lines->items[i];
		}
	}
	lines->count = kept;
}

static size_t slot_of(const struct names *names, const char *name)
{
	size_t hash = 14695981039346656037u, at;
	for (const char *c = name; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 1099511628211u;
	for (at = hash & (names->size - 1); names->index[at]; at = (at + 1) & (names->size - 1))
		if (!strcmp(names->items[names->index[at] - 1], name))
			break;
	return at;
}

static bool grow(struct names *names)
{
	size_t size = names->size ? 4 * names->size : 4096;
	const char **items = realloc(names->items, size / 2 * sizeof(*items));
	uint32_t *index = calloc(size, sizeof(*index));
	names->items = items ? items : names->items;
	if (!items || !index) {
		free(index);
		return false;
	}
	free(names->index);
	names->index = index;
	names->room = size / 2;
	names->size = size;
	for (size_t i = 0; i < names->count; i++)
		names->index[slot_of(names, names->items[i])] = (uint32_t)i + 1;
	return true;
}

/* -1: memory is short. */
static int64_t number_of(struct names *names, const char *name)
{
	if (names->count == names->room && (names->count == UINT32_MAX || !grow(names)))
		return -1;
	size_t at = slot_of(names, name);
	if (!names->index[at]) {
		names->items[names->count++] = name;
		names->index[at] = (uint32_t)names->count;
	}
	return names->index[at] - 1;
}

/* How many bytes of the path, whole names with the `;` behind them, are as in the one before, and
 * how many names these are. */
static size_t shared(const char *last, const char *path, size_t *count)
{
	size_t same = 0, i = 0;
	*count = 0;
	for (; path[i] && last[i] == path[i]; i++) {
		if (path[i] != ';')
			continue;
		same = i + 1;
		++*count;
	}
	if (last[i] == ';' && !path[i]) { /* the path ends where the other goes on */
		same = i;
		++*count;
	} else if (path[i] == ';' && !last[i] && i) {
		same = i + 1;
		++*count;
	}
	return same;
}

/* Writes what is new of a path, whose names it ends where `;` was; *frames: how many. */
static bool write_path(FILE *out, struct names *names, char *path, size_t *frames)
{
	for (char *name = path, *next; name && *name; name = next) {
		next = strchr(name, ';');
		if (next)
			*next++ = 0;
		int64_t number = number_of(names, name);
		if (number < 0)
			return false;
		fprintf(out, " %" PRId64, number);
		++*frames;
	}
	return true;
}

/* false: memory is short, and the last lines are missing. */
static bool write_stacks(FILE *out, const struct lines *lines, struct names *names, size_t *frames)
{
	char *last = NULL;
	bool fine = true;
	for (size_t i = 0; i < lines->count && fine; i++) {
		const struct line *line = &lines->items[i];
		size_t count, same = shared(last ? last : "", line->path, &count);
		free(last);
		last = strdup(line->path); /* writing cuts it into pieces */
		fprintf(out, "%zu", count);
		fine = last && write_path(out, names, line->path + same, frames);
		fprintf(out, ":%" PRIu64 ":%" PRIu64 "\n", line->now, line->before);
	}
	free(last);
	return fine;
}

bool fay_flame_page(FILE *out, const char *query, char *folded, char *before)
{
	struct lines lines = { 0 };
	struct names names = { 0 };
	char *stacks = NULL;
	size_t size, frames = 0;
	bool fine = read_folded(&lines, folded, false) &&
		    (!before || read_folded(&lines, before, true));
	FILE *memory = open_memstream(&stacks, &size);
	arrange(&lines);
	fine = memory && write_stacks(memory, &lines, &names, &frames) && fine;
	fine = (!memory || !fclose(memory)) && stacks && fine;
	fputs(page_query, out);
	fay_write_html(out, query);
	fputs(page_names, out);
	for (size_t i = 0; i < names.count; i++) {
		fay_write_html(out, names.items[i]);
		fputc('\n', out);
	}
	fputs(page_frames, out);
	fprintf(out, "%zu", frames);
	fputs(page_compared, out);
	fputs(before ? "1" : "", out);
	fputs(page_stacks, out);
	fputs(stacks ? stacks : "", out);
	fputs(page_end, out);
	free(stacks);
	free(names.items);
	free(names.index);
	free(lines.items);
	return fine;
}

void fay_output_flame(struct fay_writer *writer, const struct fay_view *view,
		      const struct fay_result *result, bool final)
{
	if (!final)
		return;
	struct fay_writer folded = *writer;
	char *lines = NULL, *before = writer->before ? strdup(writer->before) : NULL;
	size_t size;
	folded.format = FAY_FORMAT_FOLDED;
	folded.out = open_memstream(&lines, &size);
	if (folded.out) {
		fay_output_folded(&folded, view, result, true);
		fclose(folded.out);
	}
	char none[] = "";
	if (!fay_flame_page(writer->out, writer->query ? writer->query : "", lines ? lines : none,
			    before) ||
	    !lines || (writer->before && !before))
		fputs("fay: out of memory for the stacks\n", stderr);
	free(lines);
	free(before);
}
