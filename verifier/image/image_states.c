/* SPDX-License-Identifier: MIT */
/*
 * State objects and their columns: sizes, merge operators, and that no two objects overlap or share
 * a name. Work is linear in the tables' sizes but for sorting (by name and by offset).
 */
#include <stdlib.h>
#include <string.h>

#include "image_parse.h"

/* Size and parameters that each merge operator asks of its column. */
static bool check_column(struct parser *parser, uint32_t index, const struct fay_image_column *c)
{
	bool size_ok;

	if (c->type < FAY_TYPE_I64 || c->type > FAY_TYPE_BOOL)
		return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
					 "column %u has unknown type %u", index, c->type);
	if (c->merge > FAY_MERGE_SAMPLE)
		return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
					 "column %u has unknown merge operator %u", index,
					 c->merge);
	if (c->offset % 8 != 0 || c->size % 8 != 0 || c->size == 0 || c->size > MAX_ROW_SIZE ||
	    c->offset > MAX_ROW_SIZE)
		return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
					 "column %u: offset %u, size %u", index, c->offset,
					 c->size);
	if (c->type == FAY_TYPE_STRING && c->merge != FAY_MERGE_KEY && c->merge != FAY_MERGE_COUNT)
		return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
					 "column %u merges strings by operator %u", index,
					 c->merge);
	switch ((enum fay_merge)c->merge) {
	case FAY_MERGE_KEY: size_ok = c->type == FAY_TYPE_STRING || c->size == 8; break;
	case FAY_MERGE_AVERAGE: size_ok = c->size == 16; break;
	case FAY_MERGE_HIST_LOG2: size_ok = c->size == FAY_HIST_LOG2_BUCKETS * 8; break;
	case FAY_MERGE_HIST_LINEAR: size_ok = c->size >= 3 * 8; break;
	case FAY_MERGE_HIST_LOGLINEAR: size_ok = c->size == FAY_HIST_LOGLINEAR_BUCKETS * 8; break;
	case FAY_MERGE_QUANTILE: size_ok = c->size == FAY_QUANTILE_BUCKETS * 4; break;
	case FAY_MERGE_DISTINCT: /* 2^p registers */
		size_ok = c->size >= 16 && (c->size & (c->size - 1)) == 0;
		break;
	case FAY_MERGE_TOP: size_ok = c->size >= 32 && c->size % 16 == 0; break;
	case FAY_MERGE_FIRST:
	case FAY_MERGE_LAST: size_ok = c->size == 16; break;
	case FAY_MERGE_SAMPLE: size_ok = c->size % 16 == 0; break;
	default: size_ok = c->size == 8;
	}
	if (!size_ok)
		return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
					 "column %u of operator %u has size %u", index, c->merge,
					 c->size);
	if (c->merge == FAY_MERGE_HIST_LINEAR ? c->param[1] <= 0
					      : c->param[0] != 0 || c->param[1] != 0)
		return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
					 "column %u of operator %u has wrong parameters", index,
					 c->merge);
	return true;
}

bool fay_parse_columns(struct parser *parser)
{
	const struct section *section = &parser->known[SECTION_COLUMNS];
	struct fay_schema *schema = &parser->image->schema;
	uint32_t count = parser->image->header.column_count;

	if (!fay_parser_table_size(parser, SECTION_COLUMNS, count, sizeof(struct fay_image_column),
				   ".fay.columns"))
		return false;
	schema->columns = fay_parser_alloc(parser, count, sizeof(*schema->columns));
	if (!schema->columns)
		return false;
	schema->column_count = count;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t at = (uint64_t)i * sizeof(struct fay_image_column);
		struct fay_schema_column *column = &schema->columns[i];
		struct fay_image_column c;

		memcpy(&c, section->bytes + at, sizeof(c));
		if (!check_column(parser, i, &c))
			return false;
		*column = (struct fay_schema_column){ .type = c.type,
						      .merge = c.merge,
						      .offset = c.offset,
						      .size = c.size,
						      .param = { c.param[0], c.param[1] } };
		column->name = fay_parser_reference(
			parser, section, at + offsetof(struct fay_image_column, name), c.name);
		if (!column->name)
			return false;
		if (!*column->name)
			return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
						 "column %u has an empty name", i);
	}
	return true;
}

/* The columns of one state: inside the row, not overlapping, keys before values. */
static bool check_state_columns(struct parser *parser, uint32_t index,
				const struct fay_schema_state *s)
{
	const struct fay_schema *schema = &parser->image->schema;
	uint32_t count = (uint32_t)s->keys + s->values, first = s->kind == FAY_STATE_TABLE ? 1 : 0;
	bool taken[MAX_ROW_COLUMNS] = { false };

	if (count == 0 || count > MAX_ROW_COLUMNS || s->first_column > schema->column_count ||
	    count > schema->column_count - s->first_column)
		return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
					 "state %u has %u columns from %u, the image has %u", index,
					 count, s->first_column, schema->column_count);
	for (uint32_t i = 0; i < count; i++) {
		const struct fay_schema_column *c = &schema->columns[s->first_column + i];

		if (c->offset > s->row_size || c->size > s->row_size - c->offset)
			return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
						 "column %s of state %u lies outside the row",
						 c->name, index);
		if ((c->merge == FAY_MERGE_KEY) != (s->kind == FAY_STATE_STREAM || i < s->keys))
			return fay_parser_refuse(
				parser, FAY_RULE_IMG_TABLE,
				"column %s of state %u: key and value columns are mixed up",
				c->name, index);
		for (uint32_t word = c->offset / 8; word < (c->offset + c->size) / 8; word++) {
			if (word < first || taken[word])
				return fay_parser_refuse(
					parser, FAY_RULE_IMG_TABLE,
					"column %s of state %u overlaps another column or the tag",
					c->name, index);
			taken[word] = true;
		}
	}
	return true;
}

static bool check_state(struct parser *parser, uint32_t index, const struct fay_schema_state *s)
{
	uint32_t region = s->scope == FAY_SCOPE_LOCAL ? parser->image->header.local_size
						      : parser->image->header.global_size;
	uint64_t size = 0;

	if (s->scope != FAY_SCOPE_LOCAL && s->scope != FAY_SCOPE_GLOBAL)
		return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
					 "state %u has unknown scope %u", index, s->scope);
	if (s->row_size == 0 || s->row_size % 8 != 0 || s->row_size > MAX_ROW_SIZE)
		return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE, "state %u has row_size %u",
					 index, s->row_size);
	switch (s->kind) {
	case FAY_STATE_CELL:
		if (s->keys != 0 || s->rows != 1)
			return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
						 "cell %u has key columns or %u rows", index,
						 s->rows);
		size = s->row_size;
		break;
	case FAY_STATE_TABLE:
		if (s->keys == 0 || s->rows < 2 || s->rows > MAX_TABLE_ROWS ||
		    (s->rows & (s->rows - 1)))
			return fay_parser_refuse(
				parser, FAY_RULE_IMG_TABLE,
				"table %u has %u key columns and %u rows (a power of two, 2 to %u)",
				index, s->keys, s->rows, MAX_TABLE_ROWS);
		size = sizeof(struct fay_table_header) + (uint64_t)s->rows * s->row_size;
		break;
	case FAY_STATE_STREAM:
		if (s->rows != 1)
			return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
						 "stream %u has %u rows, must be 1", index,
						 s->rows);
		break;
	default:
		return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE, "state %u has unknown kind %u",
					 index, s->kind);
	}
	if (s->kind != FAY_STATE_CELL && s->scope != FAY_SCOPE_LOCAL)
		return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
					 "state %u: tables and streams are local", index);
	if (s->size != size)
		return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
					 "state %u has size %u, expected %llu", index, s->size,
					 (unsigned long long)size);
	if (s->offset % 8 != 0 || s->offset > region || s->size > region - s->offset)
		return fay_parser_refuse(
			parser, FAY_RULE_IMG_TABLE,
			"state %u at offset %u, size %u, does not lie in its region of %u bytes",
			index, s->offset, s->size, region);
	return check_state_columns(parser, index, s);
}

static int compare_name(const void *a, const void *b)
{
	const struct fay_schema_state *const *x = a, *const *y = b;
	return strcmp((*x)->name, (*y)->name);
}

static int compare_place(const void *a, const void *b)
{
	const struct fay_schema_state *const *x = a, *const *y = b;

	if ((*x)->scope != (*y)->scope)
		return (*x)->scope < (*y)->scope ? -1 : 1;
	return (*x)->offset<(*y)->offset ? -1 : (*x)->offset>(*y)->offset;
}

/* Names are unique; the objects of one region do not overlap. */
static bool check_states_together(struct parser *parser)
{
	const struct fay_schema *schema = &parser->image->schema;
	const struct fay_schema_state **order =
		fay_parser_alloc(parser, schema->state_count, sizeof(*order));
	const struct fay_schema_state *before = NULL;

	if (!order)
		return false;
	for (uint32_t i = 0; i < schema->state_count; i++)
		order[i] = &schema->states[i];
	qsort(order, schema->state_count, sizeof(*order), compare_name);
	for (uint32_t i = 1; i < schema->state_count; i++) {
		if (strcmp(order[i - 1]->name, order[i]->name) == 0)
			return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
						 "two states are named %s", order[i]->name);
	}
	qsort(order, schema->state_count, sizeof(*order), compare_place);
	for (uint32_t i = 0; i < schema->state_count; i++) {
		if (order[i]->size == 0)
			continue;
		if (before && before->scope == order[i]->scope &&
		    before->size > order[i]->offset - before->offset)
			return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
						 "states %s and %s overlap", before->name,
						 order[i]->name);
		before = order[i];
	}
	return true;
}

bool fay_parse_states(struct parser *parser)
{
	const struct section *section = &parser->known[SECTION_STATE];
	struct fay_schema *schema = &parser->image->schema;
	uint32_t count = parser->image->header.state_count;

	if (!fay_parser_table_size(parser, SECTION_STATE, count, sizeof(struct fay_image_state),
				   ".fay.state"))
		return false;
	schema->local_size = parser->image->header.local_size;
	schema->global_size = parser->image->header.global_size;
	schema->states = fay_parser_alloc(parser, count, sizeof(*schema->states));
	if (!schema->states)
		return false;
	schema->state_count = count;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t at = (uint64_t)i * sizeof(struct fay_image_state);
		struct fay_schema_state *state = &schema->states[i];
		struct fay_image_state s;

		memcpy(&s, section->bytes + at, sizeof(s));
		if (s.reserved[0] || s.reserved[1] || s.reserved[2] || s.reserved[3])
			return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
						 "a reserved field of state %u is not 0", i);
		*state = (struct fay_schema_state){ .kind = s.kind,
						    .scope = s.scope,
						    .offset = s.offset,
						    .size = s.size,
						    .rows = s.rows,
						    .row_size = s.row_size,
						    .first_column = s.first_column,
						    .keys = s.keys,
						    .values = s.values };
		state->name = fay_parser_reference(
			parser, section, at + offsetof(struct fay_image_state, name), s.name);
		if (!state->name)
			return false;
		if (!*state->name)
			return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
						 "state %u has an empty name", i);
		if (!check_state(parser, i, state))
			return false;
	}
	return check_states_together(parser);
}
