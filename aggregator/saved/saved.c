/* SPDX-License-Identifier: MIT */
/* Reading saved traces. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fay/image.h"
#include "fay/saved.h"
#include "fay/utf8.h"

struct name {
	uint64_t hash;
	char *text; /* a text of FAY_TEXT_MAX bytes has "..." behind it */
	uint32_t size;
	bool is_text;
	bool wanted; /* of fay_saved_only() */
};

struct fay_saved {
	FILE *file;
	struct fay_saved_header header;
	struct fay_saved_stream streams[FAY_SAVED_STREAMS];
	struct fay_saved_column columns[FAY_SAVED_STREAMS][FAY_SAVED_COLUMNS];
	struct name *names; /* by hash */
	size_t name_count;
	const volatile sig_atomic_t *stop; /* NULL: nothing does */
	uint64_t rows_read;
	uint64_t size, left; /* bytes of the file, and of the rows that were not read yet */
	bool ended;          /* the trace did: rows_size is what there must be */
	/* selected: FAY_SAVED_STREAMS for all; stream: of the last row */
	uint32_t selected, stream;
	const struct fay_saved_column *only; /* NULL: rows of all functions are read */
	uint8_t row[FAY_SAVED_ROW];
};

/* Bytes of the text before the first one that a terminal would not show as it is. */
static size_t shown(const char *text)
{
	size_t size = strlen(text), at = 0, length;
	while (at < size && (length = fay_utf8_printable((const uint8_t *)text + at, size - at)))
		at += length;
	return at;
}

static const char *check_column(const struct fay_saved_stream *stream,
				const struct fay_saved_column *c)
{
	if (!memchr(c->name, 0, sizeof(c->name)) || !c->name[0])
		return "a column has no name";
	if (c->name[shown(c->name)] || strpbrk(c->name, "\"\\"))
		return "a column's name cannot be shown";
	if (!c->size || c->size % 8 || c->offset % 8 || c->offset > stream->row_size ||
	    c->size > stream->row_size - c->offset)
		return "a column lies outside the row";
	if (c->type > 0xff)
		return "a column of an unknown type";
	return NULL;
}

/* The pattern is the text of a query, which may be anything, and may be cut within a character. */
static const char *check_stream(struct fay_saved_stream *stream)
{
	if (!stream->column_count || stream->column_count > FAY_SAVED_COLUMNS)
		return "columns";
	if (!stream->row_size || stream->row_size % 8 || stream->row_size > FAY_SAVED_ROW)
		return "size of a row";
	if (!memchr(stream->pattern, 0, sizeof(stream->pattern)))
		return "a source";
	for (size_t at; stream->pattern[at = shown(stream->pattern)];)
		stream->pattern[at] = '?';
	return NULL;
}

static const char *check_header(struct fay_saved *s)
{
	struct fay_saved_header *h = &s->header;
	if (memcmp(h->magic, FAY_SAVED_MAGIC, sizeof(h->magic)))
		return memcmp(h->magic, FAY_SAVED_MAGIC, sizeof(h->magic) - 1)
			       ? "it does not begin with the header of one"
			       : "it is of another version of fay";
	if (h->header_size != sizeof(*h) || !h->stream_count || h->stream_count > FAY_SAVED_STREAMS)
		return "header or sources";
	if (h->rows_at < sizeof(*h) || h->rows_at > s->size)
		return "where rows begin";
	s->ended = h->rows_size != UINT64_MAX;
	if (!s->ended) {
		h->rows_size = s->size - h->rows_at;
		h->name_count = 0;
		return NULL;
	}
	if (h->rows_size > s->size - h->rows_at)
		return "rows are missing at its end";
	if (h->row_count > h->rows_size / 8)
		return "number of rows";
	if (h->name_count > FAY_SAVED_NAMES || h->names_at > s->size ||
	    h->name_count > (s->size - h->names_at) / sizeof(struct fay_saved_name))
		return "names";
	return NULL;
}

static bool read_names(struct fay_saved *s)
{
	uint64_t left = s->size - s->header.names_at;
	if (!s->header.name_count)
		return true;
	s->names = calloc(s->header.name_count, sizeof(*s->names));
	if (!s->names || fseeko(s->file, (off_t)s->header.names_at, SEEK_SET))
		return false;
	for (uint64_t i = 0; i < s->header.name_count; i++) {
		struct fay_saved_name name;
		if (left < sizeof(name) || fread(&name, sizeof(name), 1, s->file) != 1)
			return false;
		left -= sizeof(name);
		uint64_t padded = ((uint64_t)name.size + 7) & ~UINT64_C(7);
		if (padded > left || name.size > FAY_SAVED_ROW)
			return false;
		left -= padded;
		s->names[i] = (struct name){ .hash = name.hash,
					     .text = calloc(1, padded + FAY_TEXT_CUT_MARK + 1),
					     .size = name.size,
					     .is_text = name.is_text };
		s->name_count++;
		if (!s->names[i].text ||
		    (padded && fread(s->names[i].text, padded, 1, s->file) != 1))
			return false;
		if (name.is_text && name.size == FAY_TEXT_MAX)
			memcpy(s->names[i].text + name.size, "...", FAY_TEXT_CUT_MARK);
	}
	return true;
}

static int compare_names(const void *left, const void *right)
{
	const struct name *a = left, *b = right;
	if (a->is_text != b->is_text)
		return a->is_text ? 1 : -1;
	return (a->hash > b->hash) - (a->hash < b->hash);
}

static const char *read_streams(struct fay_saved *s)
{
	const char *wrong = NULL;
	uint32_t count = s->header.stream_count;
	uint64_t end =
		sizeof(s->header) + count * sizeof(*s->streams) + (uint64_t)s->header.text_size;
	if (fread(s->streams, sizeof(*s->streams), count, s->file) != count)
		return "it is too short";
	for (uint32_t i = 0; i < count; i++) {
		struct fay_saved_stream *stream = &s->streams[i];
		if ((wrong = check_stream(stream)))
			return wrong;
		if (fread(s->columns[i], sizeof(**s->columns), stream->column_count, s->file) !=
		    stream->column_count)
			return "it is too short";
		for (uint32_t c = 0; c < stream->column_count && !wrong; c++)
			wrong = check_column(stream, &s->columns[i][c]);
		if (wrong)
			return wrong;
		end += stream->column_count * sizeof(struct fay_saved_column);
	}
	return s->header.rows_at < end ? "where rows begin" : NULL;
}

static const char *read_all(struct fay_saved *s)
{
	if (fread(&s->header, sizeof(s->header), 1, s->file) != 1)
		return "it is too short";
	const char *wrong = check_header(s);
	if (!wrong)
		wrong = read_streams(s);
	if (wrong)
		return wrong;
	if (!s->ended)
		s->header.row_count = s->header.rows_size / (s->streams[0].row_size +
							     (s->header.stream_count > 1 ? 8 : 0));
	if (!read_names(s))
		return "its names cannot be read";
	if (s->name_count)
		qsort(s->names, s->name_count, sizeof(*s->names), compare_names);
	s->left = s->header.rows_size;
	s->selected = s->header.stream_count == 1 ? 0 : FAY_SAVED_STREAMS;
	return fseeko(s->file, (off_t)s->header.rows_at, SEEK_SET) ? "its rows cannot be read"
								   : NULL;
}

int fay_saved_open(const char *path, struct fay_saved **saved, struct fay_error *error)
{
	struct stat status;
	struct fay_saved *s = calloc(1, sizeof(*s));
	if (!s)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	s->file = fopen(path, "re");
	if (!s->file || fstat(fileno(s->file), &status)) {
		fay_error_set(error, FAY_E_USAGE, "cannot open '%s': %s", path, strerror(errno));
		fay_saved_close(s);
		return FAY_E_USAGE;
	}
	s->size = (uint64_t)status.st_size;
	const char *wrong = S_ISREG(status.st_mode) ? read_all(s) : "it is not a regular file";
	if (wrong) {
		fay_saved_close(s);
		return fay_error_set(error, FAY_E_REFUSED,
				     "'%s' is not a saved trace, or damaged: %s", path, wrong);
	}
	*saved = s;
	return FAY_OK;
}

void fay_saved_close(struct fay_saved *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->name_count; i++)
		free(s->names[i].text);
	free(s->names);
	if (s->file)
		fclose(s->file);
	free(s);
}

bool fay_saved_is(const struct fay_saved *s, int descriptor)
{
	struct stat own, other;
	return !fstat(fileno(s->file), &own) && !fstat(descriptor, &other) &&
	       own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

const struct fay_saved_header *fay_saved_header(const struct fay_saved *s)
{
	return &s->header;
}

const struct fay_saved_stream *fay_saved_stream_at(const struct fay_saved *s, uint32_t stream)
{
	return &s->streams[stream];
}

const struct fay_saved_column *fay_saved_column_at(const struct fay_saved *s, uint32_t stream,
						   uint32_t index)
{
	return &s->columns[stream][index];
}

void fay_saved_select(struct fay_saved *s, uint32_t stream)
{
	s->selected = stream;
}

uint32_t fay_saved_selected(const struct fay_saved *s)
{
	return s->selected == FAY_SAVED_STREAMS ? 0 : s->selected;
}

const struct fay_saved_column *fay_saved_column(const struct fay_saved *s, const char *name)
{
	uint32_t stream = fay_saved_selected(s);
	const struct fay_saved_column *columns = s->columns[stream];
	for (uint32_t i = 0; i < s->streams[stream].column_count; i++)
		if (!strcmp(columns[i].name, name))
			return &columns[i];
	return NULL;
}

static struct name *find_name(const struct fay_saved *s, uint64_t hash, bool is_text)
{
	struct name key = { .hash = hash, .is_text = is_text };
	return s->name_count ? bsearch(&key, s->names, s->name_count, sizeof(key), compare_names)
			     : NULL;
}

const char *fay_saved_name(const struct fay_saved *s, uint64_t hash)
{
	const struct name *found = find_name(s, hash, false);
	return found ? found->text : NULL;
}

struct fay_text_bytes fay_saved_text(const struct fay_saved *s, const uint8_t *bytes)
{
	struct fay_text_bytes text = fay_text_of(NULL, bytes);
	struct fay_text_cell cell;
	memcpy(&cell, bytes, sizeof(cell));
	const struct name *found = text.lost ? find_name(s, cell.low, true) : NULL;
	/* a file may say anything: of a text that was not cut there is no mark */
	return found ? (struct fay_text_bytes){ .bytes = found->text,
						.length = strlen(found->text) < found->size
								  ? strlen(found->text)
								  : found->size,
						.cut = cell.high >> 56 == FAY_TEXT_CUT &&
						       found->size == FAY_TEXT_MAX }
		     : text;
}

size_t fay_saved_only(struct fay_saved *s, const char *glob)
{
	size_t count = 0;
	const struct fay_saved_column *function = fay_saved_column(s, "function");
	if (!function || function->type != FAY_TYPE_FUNCTION)
		return 0;
	s->only = function;
	for (size_t i = 0; i < s->name_count; i++)
		count += s->names[i].wanted =
			!s->names[i].is_text && !fnmatch(glob, s->names[i].text, 0);
	return count;
}

static bool read_bytes(struct fay_saved *s, void *to, size_t size, struct fay_error *error)
{
	if (fread(to, size, 1, s->file) == 1)
		return true;
	fay_error_set(error, FAY_E_INTERNAL, "the saved trace cannot be read: %s",
		      ferror(s->file) ? strerror(errno) : "it became shorter");
	return false;
}

static bool damaged(const char *how, struct fay_error *error)
{
	fay_error_set(error, FAY_E_REFUSED, "the saved trace is damaged: %s", how);
	return false;
}

/* Into s->row; false: there are no more rows, or *error is set. A trace that did not end may end
 * within a row. */
static bool read_row(struct fay_saved *s, struct fay_error *error)
{
	uint64_t number = 0, before = s->header.stream_count > 1 ? sizeof(number) : 0;
	if (s->left <= before)
		return false;
	if (before && !read_bytes(s, &number, sizeof(number), error))
		return false;
	if (number >= s->header.stream_count)
		return damaged("a row of no source", error);
	s->stream = (uint32_t)number;
	s->left -= before;
	uint32_t size = s->streams[s->stream].row_size;
	if (s->left < size)
		return s->ended ? damaged("it ends within a row", error) : false;
	s->left -= size;
	return read_bytes(s, s->row, size, error);
}

static bool is_wanted(const struct fay_saved *s)
{
	uint64_t hash;
	if (s->selected != FAY_SAVED_STREAMS && s->stream != s->selected)
		return false;
	if (!s->only)
		return true;
	memcpy(&hash, s->row + s->only->offset, sizeof(hash));
	const struct name *name = find_name(s, hash, false);
	return name && name->wanted;
}

const uint8_t *fay_saved_next(struct fay_saved *s, struct fay_error *error)
{
	error->code = FAY_OK;
	while (!(s->stop && *s->stop) && read_row(s, error)) {
		s->rows_read++;
		if (is_wanted(s))
			return s->row;
	}
	return NULL;
}

void fay_saved_stop_on(struct fay_saved *s, const volatile sig_atomic_t *stop)
{
	s->stop = stop;
}

uint64_t fay_saved_rows_read(const struct fay_saved *s)
{
	return s->rows_read;
}

bool fay_saved_cut_off(const struct fay_saved *s)
{
	return !s->ended;
}

uint32_t fay_saved_row_stream(const struct fay_saved *s)
{
	return s->stream;
}
