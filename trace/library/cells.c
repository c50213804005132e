/* SPDX-License-Identifier: MIT */
/*
 * Rows as typed values. Texts and items of a row lie one behind the other in memory that grows;
 * while a row is made they are known by where they begin, and pointed to once it is whole.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tracer.h"

/* Room for `more` elements behind `used`. */
static bool make_room(void **memory, size_t *room, size_t used, size_t more, size_t element)
{
	size_t wanted = used + more;
	if (*memory && wanted <= *room)
		return true;
	void *grown = realloc(*memory, 2 * wanted * element);
	if (!grown)
		return false;
	*memory = grown;
	*room = 2 * wanted;
	return true;
}

/* Where the copy begins, as a pointer that is put right in the end. */
static const char *put_text(struct fay_tracer *t, const char *bytes, size_t size)
{
	if (!make_room((void **)&t->texts, &t->text_room, t->text_size, size + 1, 1)) {
		t->no_memory = true;
		return NULL;
	}
	uintptr_t at = t->text_size;
	memcpy(t->texts + at, bytes, size);
	t->texts[at + size] = 0;
	t->text_size += size + 1;
	return (const char *)at;
}

static void put_item(struct fay_tracer *t, const char *label, uint64_t count, double value)
{
	if (!make_room((void **)&t->items, &t->item_room, t->item_count, 1, sizeof(*t->items))) {
		t->no_memory = true;
		return;
	}
	t->items[t->item_count++] = (struct fay_cell_item){
		.label = put_text(t, label, strlen(label)), .count = count, .value = value
	};
}

static void set_text(struct fay_tracer *t, struct fay_cell *cell, const char *bytes, size_t size)
{
	cell->kind = FAY_CELL_TEXT;
	cell->size = size;
	cell->bytes = put_text(t, bytes, size);
}

static void name_function(struct fay_tracer *t, uint64_t hash, char *text, size_t size)
{
	const char *name = fay_trace_function_name(&t->trace, hash);
	if (name)
		snprintf(text, size, "%s", name);
	else
		snprintf(text, size, "function#%016" PRIx64, hash);
}

static void set_stack(struct fay_tracer *t, const struct fay_view_column *view, const uint8_t *row,
		      struct fay_cell *cell)
{
	char name[FAY_PLACE_NAME];
	uint32_t depth = fay_view_stack_depth(view, row);
	cell->kind = FAY_CELL_STACK;
	for (uint32_t i = 0; i < depth; i++) {
		fay_trace_address_name(&t->trace, fay_view_address(view, row, i),
				       (i ? 0 : FAY_ADDRESS_EXACT) |
					       (view->kernel_stack ? FAY_ADDRESS_KERNEL : 0),
				       name, sizeof(name));
		put_item(t, name, 0, 0);
	}
	cell->size = depth;
}

static void set_unsigned(struct fay_tracer *t, const struct fay_view_column *view, uint64_t value,
			 struct fay_cell *cell)
{
	char name[FAY_PLACE_NAME];
	cell->u64 = value;
	if (view->address) {
		fay_trace_address_name(&t->trace, value, view->symbol ? FAY_ADDRESS_EXACT : 0, name,
				       sizeof(name));
		set_text(t, cell, name, strlen(name));
	} else if (view->column->type == FAY_TYPE_FUNCTION) {
		name_function(t, value, name, sizeof(name));
		set_text(t, cell, name, strlen(name));
	} else if (view->column->type == FAY_TYPE_BOOL && fay_column_is_plain(view->column)) {
		cell->kind = FAY_CELL_BOOL;
	} else {
		cell->kind = view->column->type == FAY_TYPE_TIME ? FAY_CELL_TIME : FAY_CELL_U64;
	}
}

static void set_histogram(struct fay_tracer *t, const struct fay_schema_column *column,
			  const struct fay_value *value, struct fay_cell *cell)
{
	cell->kind = FAY_CELL_HISTOGRAM;
	for (size_t i = 0; i < value->histogram.count; i++) {
		char label[64];
		if (!value->histogram.buckets[i])
			continue;
		fay_bucket_label(column, i, value->histogram.count, label);
		put_item(t, label, value->histogram.buckets[i], 0);
		cell->size++;
	}
}

static void set_list(struct fay_tracer *t, const struct fay_schema_column *column,
		     const uint8_t *row, struct fay_cell *cell)
{
	struct fay_item item;
	char key[FAY_PLACE_NAME];
	cell->kind = column->merge == FAY_MERGE_QUANTILE ? FAY_CELL_QUANTILES
		     : column->merge == FAY_MERGE_TOP    ? FAY_CELL_TOP
							 : FAY_CELL_SAMPLE;
	for (; fay_value_item(column, row, cell->size, &item); cell->size++) {
		if (column->type == FAY_TYPE_FUNCTION)
			name_function(t, item.key, key, sizeof(key));
		else if (column->type == FAY_TYPE_I64)
			snprintf(key, sizeof(key), "%" PRId64, (int64_t)item.key);
		else
			snprintf(key, sizeof(key), "%" PRIu64, item.key);
		put_item(t, item.label ? item.label : key, item.label ? 0 : item.count,
			 item.label ? item.value : 0);
	}
}

static void set_cell(struct fay_tracer *t, const struct fay_view_column *view, const uint8_t *row,
		     struct fay_cell *cell)
{
	char names[FAY_VALUE_NAMES];
	const char *name;
	struct fay_value value;
	*cell = (struct fay_cell){ .kind = FAY_CELL_NONE };
	if (view->stack_frames) {
		set_stack(t, view, row, cell);
		return;
	}
	if (!fay_value_decode(view->column, row, &value))
		return;
	switch (value.kind) {
	case FAY_VALUE_I64:
		name = fay_view_name(view, row, value.i64, names);
		cell->kind = FAY_CELL_I64;
		cell->i64 = value.i64;
		if (name)
			set_text(t, cell, name, strlen(name));
		return;
	case FAY_VALUE_U64: set_unsigned(t, view, value.u64, cell); return;
	case FAY_VALUE_DOUBLE:
		cell->kind = FAY_CELL_DOUBLE;
		cell->real = value.d;
		return;
	case FAY_VALUE_STRING: {
		struct fay_text_bytes text = fay_view_string(t->trace.texts, view, row, &value);
		set_text(t, cell, text.bytes, strnlen(text.bytes, text.length));
		return;
	}
	case FAY_VALUE_HISTOGRAM: set_histogram(t, view->column, &value, cell); return;
	case FAY_VALUE_LIST: set_list(t, view->column, row, cell); return;
	}
}

/* What was known by where it begins. */
static void put_right(struct fay_tracer *t, size_t count)
{
	size_t items = 0;
	for (size_t i = 0; i < t->item_count; i++)
		t->items[i].label = t->texts + (uintptr_t)t->items[i].label;
	for (size_t i = 0; i < count; i++) {
		struct fay_cell *cell = &t->cells[i];
		if (cell->kind == FAY_CELL_TEXT)
			cell->bytes = t->texts + (uintptr_t)cell->bytes;
		if (cell->kind < FAY_CELL_HISTOGRAM)
			continue;
		cell->items = t->items + items;
		items += cell->size;
	}
}

void fay_tracer_row(struct fay_tracer *t, const struct fay_view *view, const uint8_t *row,
		    uint64_t picture, bool final, bool revised)
{
	struct fay_row made = { .result = (size_t)(view - t->trace.views),
				.picture = picture,
				.final = final,
				.revised = revised,
				.count = view->column_count };
	bool before = t->no_memory;
	t->rows++;
	if (!t->options.row)
		return;
	t->text_size = t->item_count = 0;
	t->no_memory = !make_room((void **)&t->cells, &t->cell_room, 0, view->column_count,
				  sizeof(*t->cells));
	for (uint32_t i = 0; !t->no_memory && i < view->column_count; i++)
		set_cell(t, &view->columns[i], row, &t->cells[i]);
	if (t->no_memory)
		return;
	t->no_memory = before;
	put_right(t, view->column_count);
	made.cells = t->cells;
	t->options.row(t->options.context, &made);
}

void fay_tracer_row_deinit(struct fay_tracer *t)
{
	free(t->cells);
	free(t->items);
	free(t->texts);
}
