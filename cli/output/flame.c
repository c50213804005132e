/* SPDX-License-Identifier: MIT */
/*
 * A flame graph: a page (flame.html) that needs no other file, with the query and the stacks in it.
 * The stacks are a tree, written so that a browser need not read what is too narrow to be seen: the
 * text of a frame is
 *
 *     NAME TOTAL [BEFORE] [LENGTH, and so many characters: the frames that it calls]
 *
 * of numbers without anything between them. NAME counts the names, which come before the tree.
 * TOTAL is twice the frame's count with all below it, and 1 more if LENGTH follows. BEFORE is there
 * in comparisons: the count in the folded stacks that it is compared with. A number has five bits
 * in a character, the low ones first; characters are `?` and the 63 behind it, of which the upper
 * 32 say that the number goes on. Nothing of HTML means something by them alone.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output_parts.h"

#include "flame.inc"

#define PART 65536u /* characters of the stacks, in an element of the page */
#define FRAMES_MAX (UINT32_MAX / 2)

struct line {
	char *path; /* ends in the text itself */
	uint64_t now, before;
};
struct lines {
	struct line *items;
	size_t count, room;
};
struct frame {
	uint32_t name, above; /* above: who calls it; of the first, which stands for all, itself */
	uint64_t now, before; /* counts, of sum_up() on with all below */
	uint64_t below;       /* characters of the frames that it calls */
};
/* Each behind who calls it, and before what is right of it. */
struct tree {
	struct frame *items;
	size_t count, room;
	uint32_t deepest;
	double most; /* by which a share has changed */
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

static bool add_frame(struct tree *tree, uint32_t name, uint32_t above)
{
	if (tree->count == tree->room) {
		size_t room = tree->room ? 2 * tree->room : 4096;
		struct frame *items = realloc(tree->items, room * sizeof(*items));
		if (!items || tree->count >= FRAMES_MAX) {
			tree->items = items ? items : tree->items;
			return false;
		}
		tree->items = items;
		tree->room = room;
	}
	tree->items[tree->count++] = (struct frame){ .name = name, .above = above };
	return true;
}

/* The frames of a path that the one before did not have, below `frame`; the path's names are cut
 * apart. The last frame of the path, or UINT32_MAX: memory is short. */
static uint32_t add_path(struct tree *tree, struct names *names, char *path, uint32_t frame)
{
	for (char *name = path, *next; name && *name; name = next) {
		next = strchr(name, ';');
		if (next)
			*next++ = 0;
		int64_t number = number_of(names, name);
		if (number < 0 || !add_frame(tree, (uint32_t)number, frame))
			return UINT32_MAX;
		frame = (uint32_t)tree->count - 1;
	}
	return frame;
}

/* false: memory is short, and the last lines are missing. */
static bool plant(struct tree *tree, const struct lines *lines, struct names *names)
{
	char *last = NULL;
	uint32_t frame = 0, depth = 0; /* of the last path */
	bool fine = add_frame(tree, 0, 0);
	for (size_t i = 0; i < lines->count && fine; i++) {
		const struct line *line = &lines->items[i];
		size_t count, same = shared(last ? last : "", line->path, &count), first;
		free(last);
		last = strdup(line->path); /* which adding cuts into pieces */
		for (; depth > count; depth--)
			frame = tree->items[frame].above;
		first = tree->count;
		frame = last ? add_path(tree, names, line->path + same, frame) : UINT32_MAX;
		fine = frame != UINT32_MAX;
		if (!fine)
			break;
		depth += (uint32_t)(tree->count - first);
		tree->deepest = depth > tree->deepest ? depth : tree->deepest;
		tree->items[frame].now += line->now;
		tree->items[frame].before += line->before;
	}
	free(last);
	return fine;
}

/* --- the text of a tree --- */

static unsigned digits(uint64_t number)
{
	unsigned count = 1;
	while (number >>= 5)
		count++;
	return count;
}

static unsigned put_number(FILE *out, uint64_t number)
{
	unsigned count = 1;
	for (; number >> 5; number >>= 5, count++)
		putc_unlocked((int)('?' + 32 + (number & 31)), out);
	putc_unlocked((int)('?' + number), out);
	return count;
}

/* Totals, and how long what is below each frame will be: from the last frame, since what is below
 * one comes behind it. Of a comparison also how much the share of any has changed at most. */
static void sum_up(struct tree *tree, bool compared)
{
	for (size_t i = tree->count; i-- > 1;) {
		struct frame *frame = &tree->items[i], *above = &tree->items[frame->above];
		uint64_t size = frame->below;
		size += digits(frame->name) + digits(2 * frame->now + !!frame->below);
		size += (compared ? digits(frame->before) : 0);
		size += (frame->below ? digits(frame->below) : 0);
		above->below += size;
		above->now += frame->now;
		above->before += frame->before;
	}
	double now = (double)tree->items[0].now, before = (double)tree->items[0].before;
	for (size_t i = 1; compared && i < tree->count; i++) {
		double share = now > 0 ? (double)tree->items[i].now / now : 0;
		double other = before > 0 ? (double)tree->items[i].before / before : 0;
		double change = share > other ? share - other : other - share;
		tree->most = change > tree->most ? change : tree->most;
	}
}

/* Browsers are quicker with many short texts than with a long one. */
static void write_tree(FILE *out, const struct tree *tree, bool compared)
{
	static const char begin[] = "<script type=\"text/plain\">", end[] = "</script>";
	size_t written = 0;
	fputs(begin, out);
	for (size_t i = 1; i < tree->count; i++) {
		const struct frame *frame = &tree->items[i];
		written += put_number(out, frame->name);
		written += put_number(out, 2 * frame->now + !!frame->below);
		written += compared ? put_number(out, frame->before) : 0;
		written += frame->below ? put_number(out, frame->below) : 0;
		if (written < PART || i + 1 == tree->count)
			continue;
		fprintf(out, "%s%s", end, begin);
		written = 0;
	}
	fputs(end, out);
}

bool fay_flame_page(FILE *out, const char *query, const char *about, char *folded, char *before)
{
	struct lines lines = { 0 };
	struct names names = { 0 };
	struct tree tree = { 0 };
	struct frame none = { 0 };
	bool fine = read_folded(&lines, folded, false) &&
		    (!before || read_folded(&lines, before, true));
	arrange(&lines);
	fine = plant(&tree, &lines, &names) && fine;
	if (!tree.count)
		tree = (struct tree){ .items = &none, .count = 1 };
	sum_up(&tree, before != NULL);
	fputs(page_query, out);
	fay_write_html(out, query);
	fputs(page_about, out);
	fay_write_html(out, about);
	fputs(page_names, out);
	for (size_t i = 0; i < names.count; i++) {
		fay_write_html(out, names.items[i]);
		fputc('\n', out);
	}
	fputs(page_now, out);
	fprintf(out, "%" PRIu64, tree.items[0].now);
	fputs(page_before, out);
	fprintf(out, "%" PRIu64, tree.items[0].before);
	fputs(page_deepest, out);
	fprintf(out, "%" PRIu32, tree.deepest);
	fputs(page_most, out);
	fprintf(out, "%.6g", tree.most);
	fputs(page_compared, out);
	fputs(before ? "1" : "", out);
	fputs(page_stacks, out);
	write_tree(out, &tree, before != NULL);
	fputs(page_end, out);
	free(tree.items == &none ? NULL : tree.items);
	free(names.items);
	free(names.index);
	free(lines.items);
	return fine;
}

/* What widths are, and what they lack. */
static char *describe(const struct fay_writer *writer, const struct fay_view *view,
		      const struct fay_result *result)
{
	const struct fay_view_column *column = fay_output_folded_column(view, result);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	if (!column)
		fputs("Width: stacks, each row of the result one.", out);
	else if (column->column->merge == FAY_MERGE_COUNT)
		fprintf(out, "Width: the number of events, the column `%s`.", column->name);
	else
		fprintf(out, "Width: the column `%s`%s.", column->name,
			column->nanoseconds ? ", in nanoseconds" : "");
	if (writer->note)
		fprintf(out, " %s", writer->note);
	return fclose(out) ? NULL : text;
}

void fay_output_flame(struct fay_writer *writer, const struct fay_view *view,
		      const struct fay_result *result, bool final)
{
	if (!final)
		return;
	struct fay_writer folded = *writer;
	char *lines = NULL, *before = writer->before ? strdup(writer->before) : NULL,
	     *about = describe(writer, view, result);
	size_t size;
	folded.format = FAY_FORMAT_FOLDED;
	folded.marks_cut = true;
	folded.out = open_memstream(&lines, &size);
	if (folded.out) {
		fay_output_folded(&folded, view, result, true);
		fclose(folded.out);
	}
	char none[] = "";
	if (!fay_flame_page(writer->out, writer->query ? writer->query : "", about ? about : "",
			    lines ? lines : none, before) ||
	    !lines || (writer->before && !before))
		fputs("fay: out of memory for the stacks\n", stderr);
	free(lines);
	free(before);
	free(about);
}
