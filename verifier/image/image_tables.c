/* SPDX-License-Identifier: MIT */
/*
 * The .fay.* tables of an image: header, probes, lines; states and columns are in image_states.c.
 * Every field has one legal range; reserved ones are zero.
 *
 * Self-relative references may point to strings and code only, and are resolved here once: nothing
 * after this reads the file. Work is linear in the tables' sizes.
 */
#include <stdlib.h>
#include <string.h>

#include "fay/utf8.h"
#include "image_parse.h"

/* The string that the reference at offset `field` of `section` means, copied; NULL after a refusal.
 * */
const char *fay_parser_reference(struct parser *parser, const struct section *section,
				 uint64_t field, fay_rel32 rel)
{
	const struct section *strings = &parser->known[SECTION_STRINGS];
	uint64_t offset = section->address + field + (uint64_t)(int64_t)rel - strings->address;
	const uint8_t *start, *end;
	uint64_t rest;

	if (rel == 0 || offset >= strings->size) {
		fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
				  "the reference at %s+%#llx is not to a string in .fay.strings",
				  section->name, (unsigned long long)field);
		return NULL;
	}
	start = strings->bytes + offset;
	rest = strings->size - offset;
	end = memchr(start, 0, rest < FAY_IMAGE_MAX_STRING ? rest : FAY_IMAGE_MAX_STRING);
	if (!end) {
		fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
				  "the string at .fay.strings+%#llx does not end within %u bytes",
				  (unsigned long long)offset, FAY_IMAGE_MAX_STRING);
		return NULL;
	}
	for (const uint8_t *s = start; s < end;) {
		size_t length = fay_utf8_printable(s, (size_t)(end - s));
		if (length == 0) {
			fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
					  "the string at .fay.strings+%#llx is not printable UTF-8",
					  (unsigned long long)offset);
			return NULL;
		}
		s += length;
	}
	/* Several fields may mean one string; a copy each is bounded by the tables' limits. */
	char *copy = fay_parser_alloc(parser, (size_t)(end - start) + 1, 1);
	return copy ? memcpy(copy, start, (size_t)(end - start)) : NULL;
}

static bool read_image_header(struct parser *parser)
{
	const struct section *section = &parser->known[SECTION_IMAGE];
	struct fay_image_header *h = &parser->image->header;

	if (section->size != sizeof(*h))
		return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
					 ".fay.image has %llu bytes, expected %zu",
					 (unsigned long long)section->size, sizeof(*h));
	memcpy(h, section->bytes, sizeof(*h));
	if (memcmp(h->magic, FAY_IMAGE_MAGIC, sizeof(h->magic)) != 0)
		return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
					 ".fay.image does not begin with " FAY_IMAGE_MAGIC);
	if (h->version != FAY_IMAGE_VERSION)
		return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
					 "image version %u, this verifier knows %u", h->version,
					 FAY_IMAGE_VERSION);
	if (h->flags != 0)
		return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE, "header flags %#x must be 0",
					 h->flags);
	for (unsigned i = 0; i < 7; i++) {
		if (h->reserved[i] != 0)
			return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
						 "a reserved field of the header is not 0");
	}
	if (h->local_size % 8 != 0 || h->global_size % 8 != 0)
		return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
					 "local_size %u or global_size %u is not a multiple of 8",
					 h->local_size, h->global_size);
	if (h->local_size > FAY_IMAGE_MAX_LOCAL || h->global_size > FAY_IMAGE_MAX_GLOBAL)
		return fay_parser_refuse(
			parser, FAY_RULE_IMG_LIMIT,
			"%u bytes of LOCAL (limit %u), %u bytes of GLOBAL (limit %u)",
			h->local_size, FAY_IMAGE_MAX_LOCAL, h->global_size, FAY_IMAGE_MAX_GLOBAL);
	if (h->probe_count > FAY_IMAGE_MAX_PROBES || h->state_count > FAY_IMAGE_MAX_STATES ||
	    h->column_count > FAY_IMAGE_MAX_COLUMNS)
		return fay_parser_refuse(
			parser, FAY_RULE_IMG_LIMIT,
			"%u probes (limit %u), %u states (limit %u), %u columns (limit %u)",
			h->probe_count, FAY_IMAGE_MAX_PROBES, h->state_count, FAY_IMAGE_MAX_STATES,
			h->column_count, FAY_IMAGE_MAX_COLUMNS);
	if (h->probe_count == 0)
		return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE, "the image has no probe");
	return true;
}

bool fay_parser_table_size(struct parser *parser, enum section_id id, uint32_t count, size_t entry,
			   const char *name)
{
	if (parser->known[id].size != (uint64_t)count * entry)
		return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
					 "%s has %llu bytes, the header says %u entries of %zu",
					 name, (unsigned long long)parser->known[id].size, count,
					 entry);
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
		return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE, "probe %u has unknown kind %u",
					 index, p.kind);
	if (p.reserved0 != 0 || p.reserved1 != 0)
		return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
					 "a reserved field of probe %u is not 0", index);
	if (p.parameter != 0 && p.kind != FAY_PROBE_OFFSET && p.kind != FAY_PROBE_TIMER)
		return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
					 "probe %u of kind %u has a parameter", index, p.kind);
	if (p.parameter == 0 && p.kind == FAY_PROBE_TIMER)
		return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE, "timer probe %u has period 0",
					 index);
	code = section->address + at + offsetof(struct fay_image_probe, code) +
	       (uint64_t)(int64_t)p.code;
	if (code - text->start >= text->size)
		return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
					 "the code of probe %u is not in .text", index);
	if (p.pattern == 0 && placeless)
		facts->pattern = "";
	else
		facts->pattern = fay_parser_reference(
			parser, section, at + offsetof(struct fay_image_probe, pattern), p.pattern);
	if (!facts->pattern)
		return false;
	if (placeless != (*facts->pattern == '\0'))
		return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
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

	if (!fay_parser_table_size(parser, SECTION_PROBES, count, sizeof(struct fay_image_probe),
				   ".fay.probes"))
		return false;
	parser->image->probes = fay_parser_alloc(parser, count, sizeof(*parser->image->probes));
	if (!parser->image->probes)
		return false;
	parser->image->probe_count = count;
	for (uint32_t i = 0; i < count; i++) {
		if (!read_probe(parser, i))
			return false;
	}
	return true;
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
	files[*file_count] = fay_parser_reference(parser, lines, field, rel);
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
		return fay_parser_refuse(parser, FAY_RULE_IMG_TABLE,
					 ".fay.lines is not a whole number of entries");
	if (count > MAX_LINES)
		return fay_parser_refuse(parser, FAY_RULE_IMG_LIMIT, "%llu lines (limit %u)",
					 (unsigned long long)count, MAX_LINES);
	lines = fay_parser_alloc(parser, count, sizeof(*lines));
	files = fay_parser_alloc(parser, count, sizeof(*files));
	index_of = fay_parser_alloc(parser, strings->size, sizeof(*index_of));
	if (!lines || !files || !index_of)
		return false;
	memcpy(lines, section->bytes, section->size);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t field = i * sizeof(*lines) + offsetof(struct fay_image_line, file);

		if (lines[i].code_offset >= parser->image->text.size || lines[i].line == 0 ||
		    (i && lines[i].code_offset < lines[i - 1].code_offset))
			return fay_parser_refuse(
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

bool fay_parse_tables(struct parser *parser)
{
	if (parser->known[SECTION_STRINGS].size > MAX_STRINGS)
		return fay_parser_refuse(
			parser, FAY_RULE_IMG_LIMIT, ".fay.strings has %llu bytes (limit %u)",
			(unsigned long long)parser->known[SECTION_STRINGS].size, MAX_STRINGS);
	return read_image_header(parser) && read_probes(parser) && fay_parse_columns(parser) &&
	       fay_parse_states(parser) && read_lines(parser);
}
