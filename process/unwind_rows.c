/* SPDX-License-Identifier: MIT */
/* Rows of an object's unwind tables, in whatever order they are found. */
#include <stdlib.h>

#include "fay/stacks.h"
#include "unwind_private.h"

#define ROWS_MAX (4u << 20)

bool fay_unwind_add(struct fay_unwind_rows *rows, uint64_t address, uint32_t rule)
{
	if (rows->count == rows->room) {
		size_t more = 2 * rows->room + 1024;
		struct fay_unwind_row *grown =
			more <= ROWS_MAX ? realloc(rows->items, more * sizeof(*grown)) : NULL;
		if (!grown)
			return false;
		rows->items = grown;
		rows->room = more;
	}
	rows->items[rows->count++] = (struct fay_unwind_row){ address, rule };
	return true;
}

/* By address; where a function begins at the end of another, its own row is the last. */
static int compare_rows(const void *left, const void *right)
{
	const struct fay_unwind_row *a = left, *b = right;
	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return (a->rule != FAY_STACK_END) - (b->rule != FAY_STACK_END);
}

void fay_unwind_fold(struct fay_unwind_rows *rows)
{
	size_t kept = 0;
	if (rows->count)
		qsort(rows->items, rows->count, sizeof(*rows->items), compare_rows);
	for (size_t i = 0; i < rows->count; i++) {
		bool hidden =
			i + 1 < rows->count && rows->items[i + 1].address == rows->items[i].address;
		if (!hidden && (!kept || rows->items[kept - 1].rule != rows->items[i].rule))
			rows->items[kept++] = rows->items[i];
	}
	rows->count = kept;
}

void fay_unwind_rows_deinit(struct fay_unwind_rows *rows)
{
	free(rows->items);
	*rows = (struct fay_unwind_rows){ 0 };
}
