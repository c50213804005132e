/* SPDX-License-Identifier: MIT */
/* Reading saved traces. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fay/image.h"
#include "fay/saved.h"

struct name {
	uint64_t hash;
	char *text;
};

struct fay_saved {
	FILE *file;
	struct fay_saved_header header;
	struct fay_saved_column columns[FAY_SAVED_COLUMNS];
	struct name *names; /* by hash */
	size_t name_count;
	uint64_t size, next; /* bytes of the file; number of the next row */
	uint8_t *row;
};

static const char *check_column(const struct fay_saved_header *h, const struct fay_saved_column *c)
{
	if (!memchr(c->name, 0, sizeof(c->name)) || !c->name[0])
		return "a column has no name";
	if (!c->size || c->size % 8 || c->offset % 8 || c->offset > h->row_size ||
	    c->size > h->row_size - c->offset)
		return "a column lies outside the row";
	if (c->type > 0xff)
		return "a column of an unknown type";
	return NULL;
}

static const char *check_header(struct fay_saved_header *h, uint64_t size)
{
	if (memcmp(h->magic, FAY_SAVED_MAGIC, sizeof(h->magic)))
		return "it does not begin as one";
	if (h->header_size != sizeof(*h) || !h->column_count || h->column_count > FAY_SAVED_COLUMNS)
		return "header or columns";
	if (!h->row_size || h->row_size % 8 || h->row_size > FAY_SAVED_ROW)
		return "size of a row";
	uint64_t least =
		sizeof(*h) + h->column_count * sizeof(struct fay_saved_column) + h->text_size;
	if (h->rows_at < least || h->rows_at > size)
		return "where rows begin";
	if (h->row_count == UINT64_MAX) {
		h->row_count = (size - h->rows_at) / h->row_size;
		h->name_count = 0;
		return NULL;
	}
	if (h->row_count > (size - h->rows_at) / h->row_size)
		return "rows are missing at its end";
	if (h->name_count > FAY_SAVED_NAMES || h->names_at > size ||
	    h->name_count > (size - h->names_at) / sizeof(struct fay_saved_name))
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
		s->names[i] = (struct name){name.hash, calloc(1, padded + 1)};
		s->name_count++;
		if (!s->names[i].text ||
		    (padded && fread(s->names[i].text, padded, 1, s->file) != 1))
			return false;
	}
	return true;
}

static int compare_names(const void *left, const void *right)
{
	const struct name *a = left, *b = right;
	return (a->hash > b->hash) - (a->hash < b->hash);
}

static const char *read_all(struct fay_saved *s)
{
	if (fread(&s->header, sizeof(s->header), 1, s->file) != 1)
		return "it is too short";
	const char *wrong = check_header(&s->header, s->size);
	if (wrong)
		return wrong;
	if (fread(s->columns, sizeof(*s->columns), s->header.column_count, s->file) !=
	    s->header.column_count)
		return "it is too short";
	for (uint32_t i = 0; i < s->header.column_count && !wrong; i++)
		wrong = check_column(&s->header, &s->columns[i]);
	if (wrong)
		return wrong;
	s->row = malloc(s->header.row_size);
	if (!s->row || !read_names(s))
		return "its names cannot be read";
	if (s->name_count)
		qsort(s->names, s->name_count, sizeof(*s->names), compare_names);
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
	const char *wrong = S_ISREG(status.st_mode) ? read_all(s) : "it is no regular file";
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
	free(s->row);
	if (s->file)
		fclose(s->file);
	free(s);
}

const struct fay_saved_header *fay_saved_header(const struct fay_saved *s)
{
	return &s->header;
}

const struct fay_saved_column *fay_saved_column_at(const struct fay_saved *s, uint32_t index)
{
	return &s->columns[index];
}

const struct fay_saved_column *fay_saved_column(const struct fay_saved *s, const char *name)
{
	for (uint32_t i = 0; i < s->header.column_count; i++)
		if (!strcmp(s->columns[i].name, name))
			return &s->columns[i];
	return NULL;
}

const char *fay_saved_name(const struct fay_saved *s, uint64_t hash)
{
	struct name key = {hash, NULL};
	const struct name *found =
		s->name_count ? bsearch(&key, s->names, s->name_count, sizeof(key), compare_names)
			      : NULL;
	return found ? found->text : NULL;
}

const uint8_t *fay_saved_next(struct fay_saved *s, struct fay_error *error)
{
	error->code = FAY_OK;
	if (s->next == s->header.row_count)
		return NULL;
	if (fread(s->row, s->header.row_size, 1, s->file) != 1) {
		fay_error_set(error, FAY_E_INTERNAL, "the saved trace cannot be read: %s",
			      ferror(s->file) ? strerror(errno) : "it became shorter");
		return NULL;
	}
	s->next++;
	return s->row;
}
