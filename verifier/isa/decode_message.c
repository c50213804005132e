/* SPDX-License-Identifier: MIT */
/*
 * The words around the decoder: what a refusal says, and an instruction's name. Nothing here
 * decides whether an instruction is allowed, only by which rule it is refused.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "decode_parts.h"
#include "isa.h"

static const struct refused {
	uint8_t map, first, last, first_digit, last_digit;
	uint8_t rule; /* enum fay_rule */
	const char *why;
} refused[] = {
#define REFUSE(map, first, last, ext, rule, why)                                                   \
	{ MAP_##map, first, last, FIRST_##ext, LAST_##ext, FAY_RULE_##rule, why },
#include "opcodes_refused.def"
};

static const struct refused_vector {
	uint8_t map, pp, opcode;
	uint8_t rule; /* enum fay_rule */
	const char *why;
} refused_vectors[] = {
#define NOVEC(map, pp, opcode, rule, why) { VMAP_##map, VPP_##pp, opcode, FAY_RULE_##rule, why },
#include "opcodes_vector_refused.def"
};

static bool explain_vector(struct reader *reader)
{
	for (size_t i = 0; i < sizeof(refused_vectors) / sizeof(*refused_vectors); i++) {
		const struct refused_vector *r = &refused_vectors[i];

		if (reader->map != r->map + 1 || reader->pp != r->pp || reader->opcode != r->opcode)
			continue;
		reader->rule = r->rule;
		reader->why = r->why;
		return true;
	}
	return false;
}

/* An opcode that has no row may be one that stays out on purpose. */
static void explain_absence(struct reader *reader)
{
	/* 0F 3A has no general instructions. */
	uint8_t map = reader->map == 3 ? MAP_TWO : reader->map;
	uint8_t opcode = reader->map == 3 ? 0x3a : reader->opcode;

	if (explain_vector(reader) || reader->vex)
		return;
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		const struct refused *r = &refused[i];

		if (map != r->map || opcode < r->first || opcode > r->last ||
		    reader->digit < r->first_digit || reader->digit > r->last_digit)
			continue;
		reader->rule = r->rule;
		reader->why = r->why;
	}
}

static struct fay_refusal refuse(struct fay_arena *arena, const struct reader *reader,
				 uint64_t address)
{
	char text[3 * MAX_LENGTH + 1] = "";
	size_t shown = reader->at ? reader->at : 1;

	for (size_t i = 0; i < shown && i < reader->size; i++)
		snprintf(text + 3 * i, 4, "%02x ", reader->bytes[i]);
	if (*text)
		text[strlen(text) - 1] = '\0';
	return fay_refuse(arena, reader->rule, address, "%s (bytes %s)", reader->why, text);
}

struct fay_refusal fay_decode(struct fay_arena *arena, const uint8_t *bytes, size_t available,
			      uint64_t address, struct fay_insn *insn)
{
	struct reader reader;

	fay_reader_run(&reader, bytes, available, address, insn);
	if (reader.rule == FAY_RULE_NONE)
		return (struct fay_refusal){ .rule = FAY_RULE_NONE };
	if (reader.absent)
		explain_absence(&reader);
	return refuse(arena, &reader, address);
}

const char *fay_vector_name(const struct fay_insn *insn, char *name)
{
	const struct fay_vector_row *row = fay_vector_row(insn);

	snprintf(name, 24, "%s%s", insn->vex && row->encodings & VENCODING_LEGACY ? "V" : "",
		 row->name);
	for (char *c = name; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return name;
}
