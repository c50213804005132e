/* SPDX-License-Identifier: MIT */
/*
 * The .fay.* tables of an image: header, probes, states, columns, lines. Every field has one legal
 * range; reserved ones are zero.
 *
 * Self-relative references may point to strings and code only, and are resolved here once: nothing
 * after this reads the file. Work is linear in the tables' sizes but for sorting (states by name
 * and by offset).
 */
#include <stdlib.h>
#include <string.h>

#include "fay/utf8.h"
#include "image_parse.h"
#include "verifier/rules/rules.h"

/* The string that the reference at offset `field` of `section` means, copied; NULL after a refusal.
 * */
static const char *read_string(struct parser *parser, const struct section *section, uint64_t field,
			       fay_rel32 rel)
{
	const struct section *strings = &parser->known[SECTION_STRINGS];
	uint64_t offset = section->address + field + (uint64_t)(int64_t)rel - strings->address;
	const uint8_t *start, *end;
	uint64_t rest;

	if (rel == 0 || offset >= strings->size) {
		parser_refuse(parser, FAY_RULE_IMG_TABLE,
			      "the reference at %s+%#llx is not to a string in .fay.strings",
			      section->name, (unsigned long long)field);
		return NULL;
	}
	start = strings->bytes + offset;
	rest = strings->size - offset;
	end = memchr(start, 0, rest < FAY_IMAGE_MAX_STRING ? rest : FAY_IMAGE_MAX_STRING);
	if (!end) {
		parser_refuse(parser, FAY_RULE_IMG_TABLE,
			      "the string at .fay.strings+%#llx does not end within %u bytes",
			      (unsigned long long)offset, FAY_IMAGE_MAX_STRING);
		return NULL;
	}
	for (const uint8_t *s = start; s < end;) {
		size_t length = fay_utf8_printable(s, (size_t)(end - s));
		if (length == 0) {
			parser_refuse(parser, FAY_RULE_IMG_TABLE,
				      "the string at .fay.strings+%#llx is not printable UTF-8",
				      (unsigned long long)offset);
			return NULL;
		}
		s += length;
	}
	/* Several fields may mean one string; a copy each is bounded by the tables' limits. */
	char *copy = parser_alloc(parser, (size_t)(end - start) + 1, 1);
	return copy ? memcpy(copy, start, (size_t)(end - start)) : NULL;
}

static bool read_image_header(struct parser *parser)
{
	const struct section *section = &parser->known[SECTION_IMAGE];
	struct fay_image_header *h = &parser->image->header;

	if (section->size != sizeof(*h))
		return parser_refuse(parser, FAY_RULE_IMG_TABLE,
				     ".fay.image has %llu bytes, expected %zu",
				     (unsigned long long)section->size, sizeof(*h));
	memcpy(h, section->bytes, sizeof(*h));
	if (memcmp(h->magic, FAY_IMAGE_MAGIC, sizeof(h->magic)) != 0)
		return parser_refuse(parser, FAY_RULE_IMG_TABLE,
				     ".fay.image does not begin with " FAY_IMAGE_MAGIC);
	if (h->version != FAY_IMAGE_VERSION)
		return parser_refuse(parser, FAY_RULE_IMG_TABLE,
				     "image version %u, this verifier knows %u", h->version,
				     FAY_IMAGE_VERSION);
	if (h->flags != 0)
		return parser_refuse(parser, FAY_RULE_IMG_TABLE, "header flags %#x must be 0",
				     h->flags);
	for (unsigned i = 0; i < 7; i++) {
		if (h->reserved[i] != 0)
			return parser_refuse(parser, FAY_RULE_IMG_TABLE,
					     "a reserved field of the header is not 0");
	}
	if (h->local_size % 8 != 0 || h->global_size % 8 != 0)
		return parser_refuse(parser, FAY_RULE_IMG_TABLE,
				     "local_size %u or global_size %u is not a multiple of 8",
				     h->local_size, h->global_size);
	if (h->local_size > FAY_IMAGE_MAX_LOCAL || h->global_size > FAY_IMAGE_MAX_GLOBAL)
		return parser_refuse(parser, FAY_RULE_IMG_LIMIT,
				     "%u bytes of LOCAL (limit %u), %u bytes of GLOBAL (limit %u)",
				     h->local_size, FAY_IMAGE_MAX_LOCAL, h->global_size,
				     FAY_IMAGE_MAX_GLOBAL);
	if (h->probe_count > FAY_IMAGE_MAX_PROBES || h->state_count > FAY_IMAGE_MAX_STATES ||
	    h->column_count > FAY_IMAGE_MAX_COLUMNS)
		return parser_refuse(
			parser, FAY_RULE_IMG_LIMIT,
			"%u probes (limit %u), %u states (limit %u), %u columns (limit %u)",
			h->probe_count, FAY_IMAGE_MAX_PROBES, h->state_count, FAY_IMAGE_MAX_STATES,
			h->column_count, FAY_IMAGE_MAX_COLUMNS);
	if (h->probe_count == 0)
		return parser_refuse(parser, FAY_RULE_IMG_TABLE, "the image has no probe");
	return true;
}

static bool check_table_size(struct parser *parser, enum section_id id, uint32_t count,
			     size_t entry, const char *name)
{
	if (parser->known[id].size != (uint64_t)count * entry)
		return parser_refuse(parser, FAY_RULE_IMG_TABLE,
				     "%s has %llu bytes, the header says %u entries of %zu", name,
				     (unsigned long long)parser->known[id].size, count, entry);
	return true;
}

static bool read_probe(struct parser *parser, uint32_t index)
{
	const struct section *section = &parser->known[SECTION_PROBES];
	const struct fay_range *text = &parser->image->text;
	struct fay_probe_facts *facts = &parser->image->probes[index];
	uint64_t at = (uint64_t)index * sizeof(struct fay_image_probe), code;
	struct fay_image_probe p;
	bool placeless; /* runs at no place in the program */

	memcpy(&p, section->bytes + at, sizeof(p));
	placeless = p.kind >= FAY_PROBE_BEGIN && p.kind <= FAY_PROBE_TIMER;
	if (p.kind < FAY_PROBE_ENTRY || p.kind > FAY_PROBE_MARKER)
		return parser_refuse(parser, FAY_RULE_IMG_TABLE, "probe %u has unknown kind %u",
				     index, p.kind);
	if (p.reserved0 != 0 || p.reserved1 != 0)
		return parser_refuse(parser, FAY_RULE_IMG_TABLE,
				     "a reserved field of probe %u is not 0", index);
	if (p.parameter != 0 && p.kind != FAY_PROBE_OFFSET && p.kind != FAY_PROBE_TIMER)
		return parser_refuse(parser, FAY_RULE_IMG_TABLE,
				     "probe %u of kind %u has a parameter", index, p.kind);
	if (p.parameter == 0 && p.kind == FAY_PROBE_TIMER)
		return parser_refuse(parser, FAY_RULE_IMG_TABLE, "timer probe %u has period 0",
				     index);
	code = section->address + at + offsetof(struct fay_image_probe, code) +
	       (uint64_t)(int64_t)p.code;
	if (code - text->start >= text->size)
		return parser_refuse(parser, FAY_RULE_IMG_TABLE,
				     "the code of probe %u is not in .text", index);
	if (p.pattern == 0 && placeless)
		facts->pattern = "";
	else
		facts->pattern = read_string(
			parser, section, at + offsetof(struct fay_image_probe, pattern), p.pattern);
	if (!facts->pattern)
		return false;
	if (placeless != (*facts->pattern == '\0'))
		return parser_refuse(parser, FAY_RULE_IMG_TABLE,
				     "probe %u of kind %u with pattern \"%s\"", index, p.kind,
				     facts->pattern);
	facts->kind = p.kind;
	facts->parameter = p.parameter;
	facts->code_offset = (uint32_t)(code - parser->image->layout_base);
	return true;
}

static bool read_probes(struct parser *parser)
{
	uint32_t count = parser->image->header.probe_count;

	if (!check_table_size(parser, SECTION_PROBES, count, sizeof(struct fay_image_probe),
			      ".fay.probes"))
		return false;
	parser->image->probes = parser_alloc(parser, count, sizeof(*parser->image->probes));
	if (!parser->image->probes)
		return false;
	parser->image->probe_count = count;
	for (uint32_t i = 0; i < count; i++) {
		if (!read_probe(parser, i))
			return false;
	}
	return true;
}

/* Size and parameters that each merge operator asks of its column. */
static bool check_column(struct parser *parser, uint32_t index, const struct fay_image_column *c)
{
	bool size_ok;

	if (c->type < FAY_TYPE_I64 || c->type > FAY_TYPE_BOOL)
		return parser_refuse(parser, FAY_RULE_IMG_TABLE, "column %u has unknown type %u",
				     index, c->type);
	if (c->merge > FAY_MERGE_SAMPLE)
		return parser_refuse(parser, FAY_RULE_IMG_TABLE,
				     "column %u has unknown merge operator %u", index, c->merge);
	if (c->offset % 8 != 0 || c->size % 8 != 0 || c->size == 0 || c->size > MAX_ROW_SIZE ||
	    c->offset > MAX_ROW_SIZE)
		return parser_refuse(parser, FAY_RULE_IMG_TABLE, "column %u: offset %u, size %u",
				     index, c->offset, c->size);
	if (c->type == FAY_TYPE_STRING && c->merge != FAY_MERGE_KEY && c->merge != FAY_MERGE_COUNT)
		return parser_refuse(parser, FAY_RULE_IMG_TABLE,
				     "column %u merges strings by operator %u", index, c->merge);
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
		return parser_refuse(parser, FAY_RULE_IMG_TABLE,
				     "column %u of operator %u has size %u", index, c->merge,
				     c->size);
	if (c->merge == FAY_MERGE_HIST_LINEAR ? c->param[1] <= 0
					      : c->param[0] != 0 || c->param[1] != 0)
		return parser_refuse(parser, FAY_RULE_IMG_TABLE,
				     "column %u of operator %u has wrong parameters", index,
				     c->merge);
	return true;
}

static bool read_columns(struct parser *parser)
{
	const struct section *section = &parser->known[SECTION_COLUMNS];
	struct fay_schema *schema = &parser->image->schema;
	uint32_t count = parser->image->header.column_count;

	if (!check_table_size(parser, SECTION_COLUMNS, count, sizeof(struct fay_image_column),
			      ".fay.columns"))
		return false;
	schema->columns = parser_alloc(parser, count, sizeof(*schema->columns));
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
		column->name = read_string(parser, section,
					   at + offsetof(struct fay_image_column, name), c.name);
		if (!column->name)
			return false;
		if (!*column->name)
			return parser_refuse(parser, FAY_RULE_IMG_TABLE,
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
		return parser_refuse(parser, FAY_RULE_IMG_TABLE,
				     "state %u has %u columns from %u, the image has %u", index,
				     count, s->first_column, schema->column_count);
	for (uint32_t i = 0; i < count; i++) {
		const struct fay_schema_column *c = &schema->columns[s->first_column + i];

		if (c->offset > s->row_size || c->size > s->row_size - c->offset)
			return parser_refuse(parser, FAY_RULE_IMG_TABLE,
					     "column %s of state %u lies outside the row", c->name,
					     index);
		if ((c->merge == FAY_MERGE_KEY) != (s->kind == FAY_STATE_STREAM || i < s->keys))
			return parser_refuse(
				parser, FAY_RULE_IMG_TABLE,
				"column %s of state %u: key and value columns are mixed up",
				c->name, index);
		for (uint32_t word = c->offset / 8; word < (c->offset + c->size) / 8; word++) {
			if (word < first || taken[word])
				return parser_refuse(
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
		return parser_refuse(parser, FAY_RULE_IMG_TABLE, "state %u has unknown scope %u",
				     index, s->scope);
	if (s->row_size == 0 || s->row_size % 8 != 0 || s->row_size > MAX_ROW_SIZE)
		return parser_refuse(parser, FAY_RULE_IMG_TABLE, "state %u has row_size %u", index,
				     s->row_size);
	switch (s->kind) {
	case FAY_STATE_CELL:
		if (s->keys != 0 || s->rows != 1)
			return parser_refuse(parser, FAY_RULE_IMG_TABLE,
					     "cell %u has key columns or %u rows", index, s->rows);
		size = s->row_size;
		break;
	case FAY_STATE_TABLE:
		if (s->keys == 0 || s->rows < 2 || s->rows > MAX_TABLE_ROWS ||
		    (s->rows & (s->rows - 1)))
			return parser_refuse(
				parser, FAY_RULE_IMG_TABLE,
				"table %u has %u key columns and %u rows (a power of two, 2 to %u)",
				index, s->keys, s->rows, MAX_TABLE_ROWS);
		size = sizeof(struct fay_table_header) + (uint64_t)s->rows * s->row_size;
		break;
	case FAY_STATE_STREAM:
		if (s->rows != 1)
			return parser_refuse(parser, FAY_RULE_IMG_TABLE,
					     "stream %u has %u rows, must be 1", index, s->rows);
		break;
	default:
		return parser_refuse(parser, FAY_RULE_IMG_TABLE, "state %u has unknown kind %u",
				     index, s->kind);
	}
	if (s->kind != FAY_STATE_CELL && s->scope != FAY_SCOPE_LOCAL)
		return parser_refuse(parser, FAY_RULE_IMG_TABLE,
				     "state %u: tables and streams are local", index);
	if (s->size != size)
		return parser_refuse(parser, FAY_RULE_IMG_TABLE,
				     "state %u has size %u, expected %llu", index, s->size,
				     (unsigned long long)size);
	if (s->offset % 8 != 0 || s->offset > region || s->size > region - s->offset)
		return parser_refuse(
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
		parser_alloc(parser, schema->state_count, sizeof(*order));
	const struct fay_schema_state *before = NULL;

	if (!order)
		return false;
	for (uint32_t i = 0; i < schema->state_count; i++)
		order[i] = &schema->states[i];
	qsort(order, schema->state_count, sizeof(*order), compare_name);
	for (uint32_t i = 1; i < schema->state_count; i++) {
		if (strcmp(order[i - 1]->name, order[i]->name) == 0)
			return parser_refuse(parser, FAY_RULE_IMG_TABLE, "two states are named %s",
					     order[i]->name);
	}
	qsort(order, schema->state_count, sizeof(*order), compare_place);
	for (uint32_t i = 0; i < schema->state_count; i++) {
		if (order[i]->size == 0)
			continue;
		if (before && before->scope == order[i]->scope &&
		    before->size > order[i]->offset - before->offset)
			return parser_refuse(parser, FAY_RULE_IMG_TABLE, "states %s and %s overlap",
					     before->name, order[i]->name);
		before = order[i];
	}
	return true;
}

static bool read_states(struct parser *parser)
{
	const struct section *section = &parser->known[SECTION_STATE];
	struct fay_schema *schema = &parser->image->schema;
	uint32_t count = parser->image->header.state_count;

	if (!check_table_size(parser, SECTION_STATE, count, sizeof(struct fay_image_state),
			      ".fay.state"))
		return false;
	schema->local_size = parser->image->header.local_size;
	schema->global_size = parser->image->header.global_size;
	schema->states = parser_alloc(parser, count, sizeof(*schema->states));
	if (!schema->states)
		return false;
	schema->state_count = count;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t at = (uint64_t)i * sizeof(struct fay_image_state);
		struct fay_schema_state *state = &schema->states[i];
		struct fay_image_state s;

		memcpy(&s, section->bytes + at, sizeof(s));
		if (s.reserved[0] || s.reserved[1] || s.reserved[2] || s.reserved[3])
			return parser_refuse(parser, FAY_RULE_IMG_TABLE,
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
		state->name = read_string(parser, section,
					  at + offsetof(struct fay_image_state, name), s.name);
		if (!state->name)
			return false;
		if (!*state->name)
			return parser_refuse(parser, FAY_RULE_IMG_TABLE,
					     "state %u has an empty name", i);
		if (!check_state(parser, i, state))
			return false;
	}
	return check_states_together(parser);
}

/* Maps a line's file string to its index. Strings are told apart by where they begin, so one array
 * over .fay.strings finds them. */
static bool line_file(struct parser *parser, uint64_t field, fay_rel32 rel, uint32_t *index_of,
		      const char **files, uint32_t *file_count, int32_t *file)
{
	const struct section *lines = &parser->known[SECTION_LINES],
			     *strings = &parser->known[SECTION_STRINGS];
	uint64_t offset = lines->address + field + (uint64_t)(int64_t)rel - strings->address;

	if (offset < strings->size && index_of[offset]) {
		*file = (int32_t)index_of[offset] - 1;
		return true;
	}
	files[*file_count] = read_string(parser, lines, field, rel);
	if (!files[*file_count])
		return false;
	*file = (int32_t)*file_count;
	index_of[offset] = ++*file_count;
	return true;
}

static bool read_lines(struct parser *parser)
{
	const struct section *section = &parser->known[SECTION_LINES],
			     *strings = &parser->known[SECTION_STRINGS];
	uint64_t count = section->size / sizeof(struct fay_image_line);
	struct fay_image_line *lines;
	const char **files;
	uint32_t *index_of, file_count = 0;

	if (section->size == 0)
		return true;
	if (section->size % sizeof(*lines) != 0)
		return parser_refuse(parser, FAY_RULE_IMG_TABLE,
				     ".fay.lines is not a whole number of entries");
	if (count > MAX_LINES)
		return parser_refuse(parser, FAY_RULE_IMG_LIMIT, "%llu lines (limit %u)",
				     (unsigned long long)count, MAX_LINES);
	lines = parser_alloc(parser, count, sizeof(*lines));
	files = parser_alloc(parser, count, sizeof(*files));
	index_of = parser_alloc(parser, strings->size, sizeof(*index_of));
	if (!lines || !files || !index_of)
		return false;
	memcpy(lines, section->bytes, section->size);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t field = i * sizeof(*lines) + offsetof(struct fay_image_line, file);

		if (lines[i].code_offset >= parser->image->text.size || lines[i].line == 0 ||
		    (i && lines[i].code_offset < lines[i - 1].code_offset))
			return parser_refuse(
				parser, FAY_RULE_IMG_TABLE,
				"line entry %llu: outside .text, out of order, or line 0",
				(unsigned long long)i);
		if (!line_file(parser, field, lines[i].file, index_of, files, &file_count,
			       &lines[i].file))
			return false;
	}
	parser->image->lines = lines;
	parser->image->line_files = files;
	parser->image->line_count = (uint32_t)count;
	return true;
}

bool parse_tables(struct parser *parser)
{
	if (parser->known[SECTION_STRINGS].size > MAX_STRINGS)
		return parser_refuse(
			parser, FAY_RULE_IMG_LIMIT, ".fay.strings has %llu bytes (limit %u)",
			(unsigned long long)parser->known[SECTION_STRINGS].size, MAX_STRINGS);
	return read_image_header(parser) && read_probes(parser) && read_columns(parser) &&
	       read_states(parser) && read_lines(parser);
}
