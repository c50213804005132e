/* SPDX-License-Identifier: MIT */
/*
 * What a reader says it found in an image is looked at, field by field: nothing that the checker,
 * the dispatcher or fay.ko builds on is believed. docs/probe-image.md says what a whole file must
 * be like; that is the reader's to demand.
 *
 * Work: of a probe a string of 256 bytes at most, of the others constant; two loops nested over at
 * most 64 slots.
 */
#include <string.h>

#include "subject.h"

#define MAX_ADDRESS ((uint64_t)1 << 46)
#define PAGE 4096

const char *check_string(const struct check_bytes *table, uint64_t offset)
{
	const uint8_t *string;

	for (uint64_t n = 1; n <= 256 && (string = check_span(table, offset, n)); n++)
		if (!string[n - 1])
			return (const char *)string;
	return NULL;
}

struct check_probe check_probe(const struct check_subject *subject, uint32_t i)
{
	const struct check_bytes *probes = &subject->probes, *strings = &subject->strings;
	uint64_t at = i * sizeof(struct fay_image_probe), pattern;
	struct fay_image_probe p;

	memcpy(&p, check_span(probes, at, sizeof(p)), sizeof(p));
	pattern = probes->start + at + (uint64_t)p.pattern - strings->start;
	at += offsetof(struct fay_image_probe, code);
	return (struct check_probe){ probes->start + at + (uint64_t)p.code, p.parameter,
				     p.pattern ? check_string(strings, pattern) : "", p.kind };
}

struct fay_image_state check_state(const struct check_subject *subject, uint32_t i)
{
	struct fay_image_state s;

	memcpy(&s, check_span(&subject->states, i * sizeof(s), sizeof(s)), sizeof(s));
	return s;
}

/* All parts are in the file. */
static bool are_there(const uint8_t *file, size_t size, const struct check_subject *s)
{
	const struct check_bytes *const parts[] = { &s->text,    &s->rodata,      &s->got,
						    &s->probes,  &s->states,      &s->columns,
						    &s->strings, &s->certificate, &s->hash };

	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		uint64_t at = (uintptr_t)parts[i]->bytes - (uintptr_t)file;

		if (parts[i]->size ? at > size || parts[i]->size > size - at : parts[i]->start != 0)
			return false;
	}
	return true;
}

/* All in the span, and each apart from those before. */
static bool are_apart(const struct check_subject *s)
{
	const struct check_bytes *const run[] = { &s->text, &s->rodata, &s->got };

	if (s->base % PAGE || s->base >= MAX_ADDRESS || s->span > FAY_IMAGE_MAX_SPAN)
		return false;
	for (unsigned i = 0; i < 3; i++) {
		uint64_t at = run[i]->start - s->base, size = run[i]->size;

		if (size && (at > s->span || size > s->span - at))
			return false;
		for (unsigned k = 0; k < i && size; k++)
			if (run[k]->start < run[i]->start + size &&
			    run[i]->start < run[k]->start + run[k]->size)
				return false;
	}
	return true;
}

static bool are_slots(const struct check_subject *s)
{
	for (uint32_t i = 0; i < s->slot_count; i++) {
		uint64_t address = s->slots[i].address;

		if (address % 8 || s->slots[i].helper >= s->interface->helper_count ||
		    !check_span(&s->got, address - s->got.start, 8))
			return false;
		for (uint32_t k = 0; k < i; k++)
			if (s->slots[k].address == address)
				return false;
	}
	return true;
}

static bool are_sizes(const struct check_subject *s)
{
	return s->local_size % 8 == 0 && s->local_size <= FAY_IMAGE_MAX_LOCAL &&
	       s->global_size % 8 == 0 && s->global_size <= FAY_IMAGE_MAX_GLOBAL &&
	       s->probe_count && s->probe_count <= FAY_IMAGE_MAX_PROBES &&
	       s->slot_count <= FAY_IMAGE_MAX_HELPERS && s->state_count <= FAY_IMAGE_MAX_STATES &&
	       s->column_count <= FAY_IMAGE_MAX_COLUMNS &&
	       s->probes.size == s->probe_count * sizeof(struct fay_image_probe) &&
	       s->states.size == s->state_count * sizeof(struct fay_image_state) &&
	       s->columns.size == s->column_count * FAY_IMAGE_COLUMN;
}

static bool is_probe(const struct check_subject *s, const struct check_probe *p)
{
	bool placeless = p->kind >= FAY_PROBE_BEGIN && p->kind <= FAY_PROBE_TIMER;
	bool timer = p->kind == FAY_PROBE_TIMER, offset = p->kind == FAY_PROBE_OFFSET;

	return (s->interface != &check_probe_interface
			? p->kind == FAY_EXTENSION_ENTRY
			: p->kind >= FAY_PROBE_ENTRY && p->kind <= FAY_PROBE_MARKER) &&
	       (offset || timer == (p->parameter != 0)) && p->pattern &&
	       placeless == !*p->pattern && check_span(&s->text, p->code - s->text.start, 1);
}

/* What helpers write to it lies in its region. */
static bool is_state(const struct check_subject *s, const struct fay_image_state *of)
{
	bool table = of->kind == FAY_STATE_TABLE, stream = of->kind == FAY_STATE_STREAM;
	bool local = of->scope == FAY_SCOPE_LOCAL;
	uint32_t region = local ? s->local_size : s->global_size;
	uint64_t size = stream ? 0 : (uint64_t)of->rows * of->row_size + (table ? 16 : 0);

	return (of->kind == FAY_STATE_CELL || ((table || stream) && local)) &&
	       (local || of->scope == FAY_SCOPE_GLOBAL) &&
	       (table ? of->rows >= 2 && of->rows <= 65536 : of->rows == 1) && of->row_size &&
	       of->row_size % 8 == 0 && of->row_size <= FAY_SUBJECT_ROW &&
	       !(of->rows & (of->rows - 1)) && of->size == size && of->offset % 8 == 0 &&
	       of->offset <= region && size <= region - of->offset;
}

struct check_refusal check_read(const uint8_t *file, size_t size, const struct check_subject *s)
{
	struct check_refusal bad = { FAY_RULE_IMG_TABLE, 0, "number of entries, or slot" };

	if (size > FAY_IMAGE_MAX_FILE || !are_there(file, size, s) || !are_apart(s))
		return (struct check_refusal){ FAY_RULE_IMG_LAYOUT, 0, "place of what runs" };
	if (!are_sizes(s) || !are_slots(s))
		return bad;
	bad.what = "probe";
	for (uint32_t i = 0; i < s->probe_count; i++) {
		struct check_probe probe = check_probe(s, i);

		bad.place = (uint64_t)(s->probes.bytes - file) + i * sizeof(struct fay_image_probe);
		if (!is_probe(s, &probe))
			return bad;
	}
	bad.what = "state";
	for (uint32_t i = 0; i < s->state_count; i++) {
		struct fay_image_state state = check_state(s, i);

		bad.place = (uint64_t)(s->states.bytes - file) + i * sizeof(state);
		if (!is_state(s, &state))
			return bad;
	}
	return (struct check_refusal){ 0 };
}
