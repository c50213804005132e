/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "partials.h"

static void close_block(struct fay_parts *parts)
{
	if (parts->rows && !parts->blocks.bad)
		memcpy(parts->blocks.bytes + parts->rows_at, &parts->rows, sizeof(parts->rows));
	parts->rows = 0;
}

void fay_parts_row(struct fay_parts *parts, uint16_t state, const uint8_t *row, uint32_t row_size)
{
	if (!parts->rows || parts->state != state) {
		close_block(parts);
		if (parts->block_count == FAY_WIRE_STATES_MAX) {
			/* streams that take turns so often: the message is full */
			parts->blocks.bad = true;
			return;
		}
		parts->state = state;
		parts->block_count++;
		fay_wire_put16(&parts->blocks, state);
		parts->rows_at = parts->blocks.size;
		fay_wire_put32(&parts->blocks, 0);
	}
	fay_wire_put(&parts->blocks, row, row_size);
	parts->rows++;
}

void fay_parts_name(struct fay_parts *parts, uint64_t hash, const char *name, size_t size)
{
	if (parts->name_count == UINT16_MAX)
		return;
	size = size < FAY_WIRE_NAME_MAX ? size : FAY_WIRE_NAME_MAX;
	parts->name_count++;
	fay_wire_put64(&parts->names, hash);
	fay_wire_put16(&parts->names, (uint16_t)size);
	fay_wire_put(&parts->names, name, size);
}

size_t fay_parts_size(const struct fay_parts *parts)
{
	/* Full also when another block could not begin. */
	if (parts->block_count >= FAY_WIRE_STATES_MAX - 1)
		return FAY_WIRE_PARTIAL_MAX;
	return FAY_WIRE_HEADER + FAY_WIRE_TRAILER + 64 + parts->blocks.size + parts->names.size;
}

static void empty(struct fay_parts *parts)
{
	parts->blocks.size = parts->names.size = 0;
	parts->blocks.bad = parts->names.bad = false;
	parts->block_count = parts->name_count = 0;
	parts->rows = 0;
}

void fay_parts_finish(struct fay_parts *parts, bool combined, const struct fay_wire_member *members,
		      uint16_t count, const uint64_t losses[FAY_WIRE_LOSSES],
		      struct fay_writer_buffer *out)
{
	close_block(parts);
	fay_wire_put8(out, combined);
	fay_wire_put16(out, count);
	for (uint16_t i = 0; i < count; i++)
		fay_wire_put_member(out, &members[i]);
	for (unsigned i = 0; i < FAY_WIRE_LOSSES; i++)
		fay_wire_put64(out, losses[i]);
	fay_wire_put16(out, parts->block_count);
	fay_wire_put(out, parts->blocks.bytes, parts->blocks.size);
	fay_wire_put16(out, parts->name_count);
	fay_wire_put(out, parts->names.bytes, parts->names.size);
	out->bad |= parts->blocks.bad || parts->names.bad;
	empty(parts);
}

void fay_parts_deinit(struct fay_parts *parts)
{
	fay_wire_free(&parts->blocks);
	fay_wire_free(&parts->names);
	empty(parts);
}

/* --- names --- */

static struct fay_name *find_slot(const struct fay_names *names, uint64_t hash)
{
	size_t at = (hash * 0x9fb21c651e98df25u >> 32) & (names->size - 1);
	while (names->items[at].hash && names->items[at].hash != hash)
		at = (at + 1) & (names->size - 1);
	return &names->items[at];
}

static bool grow(struct fay_names *names)
{
	struct fay_names larger = { .size = names->size ? names->size * 2 : 256,
				    .count = names->count };
	larger.items = calloc(larger.size, sizeof(*larger.items));
	if (!larger.items)
		return false;
	for (size_t i = 0; i < names->size; i++)
		if (names->items[i].hash)
			*find_slot(&larger, names->items[i].hash) = names->items[i];
	free(names->items);
	*names = larger;
	return true;
}

bool fay_names_add(struct fay_names *names, uint64_t hash, struct fay_text text)
{
	if (!hash || names->count >= FAY_NAMES_MAX ||
	    (2 * names->count >= names->size && !grow(names)))
		return false;
	struct fay_name *slot = find_slot(names, hash);
	if (slot->hash)
		return false;
	char *copy = NULL;
	if (text.bytes) {
		copy = malloc(text.size + 1u);
		if (!copy)
			return false;
		fay_text_copy(copy, text.size + 1u, text);
	}
	*slot = (struct fay_name){ .hash = hash, .text = copy };
	names->count++;
	return true;
}

const char *fay_names_find(const struct fay_names *names, uint64_t hash)
{
	return names->size && hash ? find_slot(names, hash)->text : NULL;
}

void fay_names_deinit(struct fay_names *names)
{
	for (size_t i = 0; i < names->size; i++)
		free(names->items[i].text);
	free(names->items);
	memset(names, 0, sizeof(*names));
}

/* --- functions in rows --- */

bool fay_schema_has_functions(const struct fay_schema *schema)
{
	for (uint32_t i = 0; i < schema->column_count; i++)
		if (schema->columns[i].type == FAY_TYPE_FUNCTION)
			return true;
	return false;
}

static void column_functions(const struct fay_schema_column *column, const uint8_t *row,
			     void (*each)(void *, uint64_t), void *context)
{
	struct fay_value value;
	struct fay_item item;
	if (column->type != FAY_TYPE_FUNCTION || !fay_value_decode(column, row, &value))
		return;
	if (value.kind == FAY_VALUE_U64)
		each(context, value.u64);
	if (value.kind == FAY_VALUE_LIST)
		for (size_t i = 0; i < value.list.count && fay_value_item(column, row, i, &item);
		     i++)
			each(context, item.key);
}

void fay_row_functions(const struct fay_schema *schema, uint16_t state, const uint8_t *row,
		       void (*each)(void *context, uint64_t hash), void *context)
{
	const struct fay_schema_state *of = &schema->states[state];
	for (unsigned i = 0; i < (unsigned)of->keys + of->values; i++)
		column_functions(&schema->columns[of->first_column + i], row, each, context);
}
