/* SPDX-License-Identifier: MIT */
/*
 * The .fay.* tables: header, probes, columns, states, lines. Every field has one legal range;
 * reserved ones are zero. docs/probe-image.md is the specification. What the checker demands of
 * them is left to check_read().
 *
 * Work: of an entry, a string of 256 bytes at most, twice; of a state, 512 columns and 512 words of
 * its row at most; states are compared by pairs, 2^19 at most, by 256 bytes of their names at most.
 * The worst image of all (2^18 lines, 1024 states with long names) takes 0.2 seconds.
 */
#include "fay/utf8.h"
#include "parts.h"

#define MAX_ROW FAY_SUBJECT_ROW

static const uint32_t zero[7];

/* Where in .fay.strings the reference at offset `field` of a table leads. */
static uint64_t target(const struct check_subject *subject, const struct check_bytes *table,
		       uint64_t field, fay_rel32 rel)
{
	return table->start + field + (uint64_t)rel - subject->strings.start;
}

/* NULL if it is none, or not printable UTF-8. */
const char *fay_read_name(const struct check_subject *subject, const struct check_bytes *table,
			  uint64_t field, fay_rel32 rel)
{
	uint64_t offset = target(subject, table, field, rel);
	const char *string = rel ? check_string(&subject->strings, offset) : NULL;
	size_t step = 1;

	for (const char *s = string; s && *s && step; s += step)
		step = fay_utf8_printable((const uint8_t *)s, 4); /* ends at a NUL before */
	return step ? string : NULL;
}

struct fay_image_column fay_read_column(const struct check_subject *subject, uint32_t i)
{
	struct fay_image_column c;

	memcpy(&c, check_span(&subject->columns, i * sizeof(c), sizeof(c)), sizeof(c));
	return c;
}

static bool check_header(struct check_file *f)
{
	struct fay_image_header *h = &f->image;

	f->refusal.what = ".fay.image or .fay.strings";
	return NEED(LIMIT, f->part[STRINGS].size <= 1u << 20) &&
	       NEED(TABLE, f->part[IMAGE].size == sizeof(*h)) &&
	       NEED(TABLE, check_entry(f, &f->part[IMAGE], 0, h, sizeof(*h))) &&
	       NEED(TABLE, !memcmp(h->magic, FAY_IMAGE_MAGIC, sizeof(h->magic))) &&
	       NEED(TABLE, h->version == FAY_IMAGE_VERSION && h->flags == 0) &&
	       NEED(TABLE, !memcmp(h->reserved, zero, sizeof(h->reserved))) &&
	       NEED(TABLE, h->local_size % 8 == 0 && h->global_size % 8 == 0) &&
	       NEED(LIMIT, h->local_size <= FAY_IMAGE_MAX_LOCAL) &&
	       NEED(LIMIT, h->global_size <= FAY_IMAGE_MAX_GLOBAL) &&
	       NEED(LIMIT, h->probe_count <= FAY_IMAGE_MAX_PROBES) &&
	       NEED(LIMIT, h->state_count <= FAY_IMAGE_MAX_STATES) &&
	       NEED(LIMIT, h->column_count <= FAY_IMAGE_MAX_COLUMNS) &&
	       NEED(TABLE, h->probe_count != 0);
}

/* What check_read() does not ask: text that is shown, reserved fields, of an extension its hash. */
static bool check_probes(struct check_file *f, const struct check_subject *subject)
{
	struct fay_image_probe p;
	bool extension = subject->interface != &check_probe_interface;
	bool fine = NEED(TABLE, !extension || subject->hash.size == FAY_EXTENSION_HASH);

	f->refusal.what = "probe";
	for (uint32_t i = 0; fine && check_entry(f, &subject->probes, i, &p, sizeof(p)); i++)
		fine = NEED(TABLE, p.reserved0 == 0 && p.reserved1 == 0) &&
		       NEED(TABLE, !p.pattern || fay_read_name(subject, &subject->probes,
							       i * sizeof(p), p.pattern));
	return fine;
}

/* The sizes that merge operators ask for, in the order of enum fay_merge: least, most, step. */
static const uint16_t fits[][3] = { { 8, 8, 8 },       { 8, 8, 8 },        { 8, 8, 8 },
				    { 8, 8, 8 },       { 8, 8, 8 },        { 16, 16, 8 },
				    { 520, 520, 8 },   { 24, MAX_ROW, 8 }, { 3904, 3904, 8 },
				    { 3840, 3840, 8 }, { 16, MAX_ROW, 8 }, { 32, MAX_ROW, 16 },
				    { 16, 16, 8 },     { 16, 16, 8 },      { 16, MAX_ROW, 16 } };

static bool check_columns(struct check_file *f)
{
	const struct check_bytes *columns = &f->part[COLUMNS];
	struct fay_image_column c;
	bool fine = true;

	f->refusal.what = "column";
	for (uint32_t i = 0; fine && check_entry(f, columns, i, &c, sizeof(c)); i++) {
		const char *name = fay_read_name(f->subject, columns, i * sizeof(c), c.name);
		bool text = c.type == FAY_TYPE_STRING, key = c.merge == FAY_MERGE_KEY;
		bool linear = c.merge == FAY_MERGE_HIST_LINEAR;

		fine = NEED(TABLE, name && *name && c.merge <= FAY_MERGE_SAMPLE) &&
		       NEED(TABLE, c.type >= FAY_TYPE_I64 && c.type <= FAY_TYPE_BOOL) &&
		       NEED(TABLE, c.offset % 8 == 0 && c.offset <= MAX_ROW) &&
		       NEED(TABLE, c.size <= (text && key ? MAX_ROW : fits[c.merge][1])) &&
		       NEED(TABLE, c.size >= fits[c.merge][0] && c.size % fits[c.merge][2] == 0) &&
		       NEED(TABLE, c.merge != FAY_MERGE_DISTINCT || !(c.size & (c.size - 1))) &&
		       NEED(TABLE, !text || key || c.merge == FAY_MERGE_COUNT) &&
		       NEED(TABLE, linear ? c.param[1] > 0 : !c.param[0] && !c.param[1]);
	}
	return fine;
}

/* The columns of a state, which lie in the row, do not overlap, and are keys before values. */
static bool check_state_alone(struct check_file *f, const struct fay_image_state *s)
{
	bool table = s->kind == FAY_STATE_TABLE, stream = s->kind == FAY_STATE_STREAM;
	uint32_t count = (uint32_t)s->keys + s->values, all = f->image.column_count;
	uint64_t taken[MAX_ROW / 8 / 64] = { table }; /* a bit for 8 bytes; a table's tag */
	struct fay_image_column c = { 0 };
	bool fine = NEED(TABLE, s->kind == FAY_STATE_CELL ? s->keys == 0 : stream || s->keys) &&
		    NEED(TABLE, !memcmp(s->reserved, zero, sizeof(s->reserved))) &&
		    NEED(TABLE, count && count <= MAX_ROW / 8) &&
		    NEED(TABLE, s->first_column <= all && count <= all - s->first_column);

	for (uint32_t i = 0; fine && i < count; i++) {
		check_entry(f, &f->part[COLUMNS], s->first_column + i, &c, sizeof(c));
		fine = NEED(TABLE, (c.merge == FAY_MERGE_KEY) == (stream || i < s->keys)) &&
		       NEED(TABLE, c.offset + c.size <= s->row_size);
		for (uint32_t k = c.offset / 8; fine && k < (c.offset + c.size) / 8; k++) {
			fine = NEED(TABLE, !(taken[k / 64] >> k % 64 & 1));
			taken[k / 64] |= (uint64_t)1 << k % 64;
		}
	}
	return fine;
}

/* Each alone; names are unique; the objects of one region do not overlap. */
static bool check_states(struct check_file *f, const struct check_subject *subject)
{
	const struct check_bytes *states = &subject->states;
	struct fay_image_state s, o;
	bool fine = true;

	f->refusal.what = "state, or its column";
	for (uint32_t i = 0; fine && check_entry(f, states, i, &s, sizeof(s)); i++) {
		const char *name = fay_read_name(subject, states, i * sizeof(s), s.name);
		const uint8_t *other;
		uint64_t size = 0; /* of the name with its NUL */

		fine = NEED(TABLE, name && *name) && check_state_alone(f, &s);
		while (fine && name[size++])
			;
		for (size_t k = 0; fine && k < i && check_entry(f, states, k, &o, sizeof(o)); k++) {
			other = check_span(&subject->strings,
					   target(subject, states, k * sizeof(o), o.name), size);
			fine = NEED(TABLE, !other || memcmp(name, other, size)) &&
			       NEED(TABLE, s.scope != o.scope || !s.size || !o.size ||
						   s.offset + s.size <= o.offset ||
						   o.offset + o.size <= s.offset);
		}
	}
	return fine;
}

static bool check_lines(struct check_file *f)
{
	const struct check_bytes *lines = &f->part[LINES], *text = &f->part[TEXT];
	uint32_t before = 0;
	struct fay_image_line l;
	bool fine = NEED(TABLE, lines->size % sizeof(l) == 0) &&
		    NEED(LIMIT, lines->size / sizeof(l) <= 1u << 18);

	f->refusal.what = "line";
	for (uint32_t i = 0; fine && check_entry(f, lines, i, &l, sizeof(l)); i++) {
		uint64_t field = i * sizeof(l) + offsetof(struct fay_image_line, file);

		fine = NEED(TABLE, fay_read_name(f->subject, lines, field, l.file)) &&
		       NEED(TABLE, l.line && l.code_offset >= before && l.code_offset < text->size);
		before = l.code_offset;
	}
	return fine;
}

bool check_tables(struct check_file *f)
{
	struct check_subject *subject = f->subject;
	struct check_refusal refusal;
	bool fine = check_header(f);

	subject->text = f->part[TEXT];
	subject->rodata = f->part[RODATA];
	subject->got = f->part[GOT];
	subject->certificate = f->part[CERTIFICATE];
	subject->hash = f->part[INTERFACE];
	subject->probes = f->part[PROBES];
	subject->states = f->part[STATES];
	subject->columns = f->part[COLUMNS];
	subject->strings = f->part[STRINGS];
	subject->local_size = f->image.local_size;
	subject->global_size = f->image.global_size;
	subject->probe_count = f->image.probe_count;
	subject->state_count = f->image.state_count;
	subject->column_count = f->image.column_count;
	if (!fine)
		return false;
	refusal = check_read(f->all.bytes, f->all.size, subject);
	if (refusal.rule != FAY_RULE_NONE) {
		refusal.place = refusal.place ? refusal.place : f->refusal.place;
		f->refusal = refusal;
		return false;
	}
	return check_probes(f, subject) && check_columns(f) && check_states(f, subject) &&
	       check_lines(f);
}
