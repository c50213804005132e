/* SPDX-License-Identifier: MIT */
/* The rows of a view. A picture has them all; how much one has grown since the last gives its rate.
 */
#include <stdlib.h>
#include <string.h>

#include "fay/clock.h"

#include "parts.h"

static void free_row(struct fay_top_row *row)
{
	for (size_t i = 0; i < row->frame_count; i++)
		free(row->frames[i]);
	free(row->frames);
	free(row->shown);
	free(row->name);
}

void fay_top_table_clear(struct fay_top_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		free_row(&table->rows[i]);
	free(table->rows);
	free(table->shown);
	*table = (struct fay_top_table){ 0 };
}

void fay_top_table_resume(struct fay_top_table *table)
{
	for (size_t i = 0; i < table->count; i++) {
		struct fay_top_row *row = &table->rows[i];
		memcpy(row->base, row->values, sizeof(row->base));
		row->absent = row->absent_now = 0;
	}
	table->picture = 0;
}

static void begin_picture(struct fay_top_table *table, uint64_t picture)
{
	uint64_t now = fay_monotonic();
	if (table->picture == picture)
		return;
	table->out_count = 0;
	table->seconds = (double)(now - table->taken) / 1e9;
	table->taken = now;
	table->picture = picture;
	for (size_t i = 0; i < table->count; i++) {
		table->rows[i].before = table->rows[i].rate;
		table->rows[i].rate = 0;
		table->rows[i].out = false;
		table->rows[i].absent = table->rows[i].absent_now;
	}
}

/* Where the name is among the rows, or would be. */
static size_t place_of(const struct fay_top_table *table, const char *name)
{
	size_t low = 0, high = table->count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (strcmp(table->rows[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

#define PRESENT_LEAST 0.001 /* seconds that a rate is told of */

void fay_top_table_left_out(struct fay_top_table *table, const char *name, bool out,
			    uint64_t absent_ns)
{
	size_t at = name ? place_of(table, name) : 0;
	for (; at < table->count && (!name || !strcmp(table->rows[at].name, name)); at++) {
		struct fay_top_row *row = &table->rows[at];
		row->out |= out;
		if (row->absent_now < absent_ns)
			row->absent_now = absent_ns;
	}
}

void fay_top_table_complete(struct fay_top_table *table)
{
	for (size_t i = 0; i < table->count; i++) {
		struct fay_top_row *row = &table->rows[i];
		table->out_count += row->out;
		double present = table->seconds - (double)(row->absent_now - row->absent) / 1e9;
		if (present < PRESENT_LEAST || (row->out && row->rate <= 0))
			row->rate = row->before; /* while it was there nothing came */
		else
			row->rate *= table->seconds / present;
	}
}

static struct fay_top_row *find(struct fay_top_table *table, const char *name)
{
	size_t at = place_of(table, name);
	struct fay_top_row *row = table->rows + at;
	if (at < table->count && !strcmp(row->name, name))
		return row;
	if (table->count == table->room) {
		size_t room = table->room ? 2 * table->room : 64;
		struct fay_top_row *rows = realloc(table->rows, room * sizeof(*rows));
		if (!rows)
			return NULL;
		table->rows = rows;
		table->room = room;
		row = rows + at;
	}
	char *copy = strdup(name);
	if (!copy)
		return NULL;
	memmove(row + 1, row, (table->count - at) * sizeof(*row));
	table->shown_count = 0; /* they are elsewhere now */
	table->count++;
	*row = (struct fay_top_row){ .name = copy };
	return row;
}

struct fay_top_row *fay_top_table_put(struct fay_top_table *table, uint64_t picture,
				      const char *name, const uint64_t values[FAY_TOP_VALUES],
				      unsigned sums)
{
	begin_picture(table, picture);
	struct fay_top_row *row = find(table, name);
	if (!row)
		return NULL;
	uint64_t before = row->values[0];
	for (size_t i = 0; i < FAY_TOP_VALUES; i++)
		row->values[i] = values[i] + (sums >> i & 1 ? row->base[i] : 0);
	uint64_t grown = row->values[0] > before ? row->values[0] - before : 0;
	row->rate = table->seconds > 0 ? (double)grown / table->seconds : 0;
	row->picture = picture;
	return row;
}

static int compare(const void *a, const void *b, void *context)
{
	const struct fay_top_row *x = *(struct fay_top_row *const *)a,
				 *y = *(struct fay_top_row *const *)b;
	unsigned column = *(const unsigned *)context;
	double left = 0, right = 0;
	if (!column) {
		left = x->rate;
		right = y->rate;
	} else if (column <= FAY_TOP_VALUES) {
		left = (double)x->values[column - 1];
		right = (double)y->values[column - 1];
	}
	return left > right ? -1 : left < right ? 1 : strcmp(x->name, y->name);
}

void fay_top_table_arrange(struct fay_top_table *table, unsigned column, const char *text)
{
	struct fay_top_row **shown = realloc(table->shown, (table->count + 1) * sizeof(*shown));
	table->shown_count = 0;
	if (!shown)
		return;
	table->shown = shown;
	for (size_t i = 0; i < table->count; i++) {
		struct fay_top_row *row = &table->rows[i];
		if (strcasestr(row->shown ? row->shown : row->name, text))
			shown[table->shown_count++] = row;
	}
	qsort_r(shown, table->shown_count, sizeof(*shown), compare, &column);
}
