/* SPDX-License-Identifier: MIT */
/*
 * Parts of functions that the unwind table does not tell from functions: cold code that is jumped
 * to where no frame is set up yet. A part has neither a symbol nor, as functions have, an aligned
 * start; no call leads into it, and no address in data or in an instruction to its start; and all
 * jumps into it from elsewhere, of which there are some, are of one function and its other parts.
 * All text of the object is searched for these at every byte, once; for short jumps what lies
 * nearby is decoded.
 *
 * If something else is taken for a part its calls are counted as its only caller's. Which bytes are
 * overwritten does not depend on it: the analysis reads a part with its function, and asks who else
 * may enter it as of any code.
 */
#include "target.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include <Zydis/Zydis.h>

#include "loader/bisect.h"

#define FUNCTION_ALIGNMENT 16u
#define BRANCH_BYTES 6u
#define SHORT_MAX 132u           /* bytes that a short jump leads over, itself included */
#define NEIGHBOUR_MAX (1u << 16) /* bytes of code that is decoded for these */
#define JUMPS_MAX (1u << 20)
#define ROUNDS_MAX 16u /* parts that lead to parts */

#define NOBODY 0u /* nothing that is known leads there */
#define SEVERAL UINT64_MAX

struct part {
	uint64_t start, end;
	uint64_t owner; /* the start of the function that jumps there; NOBODY, SEVERAL */
	struct fay_symbol *symbol;
	bool function;
};

struct search {
	struct fay_object *object;
	struct part *parts; /* by start */
	size_t part_count;
	struct jump {
		size_t to;
		uint64_t from; /* the start of what it is in */
	} *jumps;
	size_t jump_count, jump_room;
	bool failed;
};

static struct part *part_at(const struct search *s, uint64_t address)
{
	size_t until = FAY_COUNT_UNTIL(s->parts, s->part_count, start, address);

	return until && address < s->parts[until - 1].end ? &s->parts[until - 1] : NULL;
}

static bool find_candidates(struct search *s)
{
	const struct fay_object *object = s->object;

	s->parts = malloc((object->code_count + 1) * sizeof(*s->parts));
	for (size_t i = 0; s->parts && i < object->code_count; i++) {
		struct fay_symbol *symbol = &object->symbols[object->code[i].index];

		if (symbol->unnamed &&
		    (symbol->kind == FAY_SYMBOL_PART || symbol->address % FUNCTION_ALIGNMENT))
			s->parts[s->part_count++] = (struct part){ .start = symbol->address,
								   .end = object->code[i].end,
								   .symbol = symbol };
	}
	return s->parts != NULL;
}

static bool is_part(const struct part *part)
{
	return !part->function && part->owner != NOBODY && part->owner != SEVERAL;
}

/* NULL: it is not code of the file. */
static const uint8_t *code_at(const struct search *s, uint64_t address, size_t size)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(s->object->elf, scn))) {
		const Elf64_Shdr *header = elf64_getshdr(scn);
		bool code = header && header->sh_flags & SHF_EXECINSTR &&
			    header->sh_type == SHT_PROGBITS;
		Elf_Data *data = code ? elf_rawdata(scn, NULL) : NULL;

		if (data && data->d_buf && address - header->sh_addr < data->d_size &&
		    size <= data->d_size - (address - header->sh_addr))
			return (const uint8_t *)data->d_buf + (address - header->sh_addr);
	}
	return NULL;
}

static void add_jump(struct search *s, uint64_t from, const struct part *to)
{
	const struct fay_symbol *in = fay_object_symbol_at(s->object, from);
	struct jump *grown;

	if (in == to->symbol)
		return;
	if (s->jump_count == s->jump_room) {
		s->jump_room = s->jump_room ? 2 * s->jump_room : 256;
		grown = s->jump_room > JUMPS_MAX ? NULL
						 : realloc(s->jumps, s->jump_room * sizeof(*grown));
		if (!grown) {
			s->failed = true;
			return;
		}
		s->jumps = grown;
	}
	s->jumps[s->jump_count++] =
		(struct jump){ (size_t)(to - s->parts), in ? in->address : SEVERAL };
}

/* What leads to parts from the code that lies at `address`. */
static void search_code(struct search *s, const uint8_t *text, size_t size, uint64_t address)
{
	uint64_t low = s->parts[0].start, high = s->parts[s->part_count - 1].end;
	bool fixed = s->object->type == ET_EXEC;

	for (size_t i = 0; i + BRANCH_BYTES <= size && !s->failed; i++) {
		bool call = text[i] == 0xe8, lea = text[i] == 0x8d && (text[i + 1] & 0xc7) == 5;
		bool two = text[i] == 0x0f && (text[i + 1] & 0xf0) == 0x80;
		struct part *part;
		int32_t distance;
		uint32_t word;
		uint64_t to;

		memcpy(&word, text + i, 4);
		part = fixed && word >= low && word < high ? part_at(s, word) : NULL;
		if (part && part->start == word)
			part->function = true;
		if (!call && !lea && !two && text[i] != 0xe9)
			continue;
		memcpy(&distance, text + i + 1 + (lea || two), 4);
		to = address + i + 5 + (lea || two) + (uint64_t)(int64_t)distance;
		part = to >= low && to < high ? part_at(s, to) : NULL;
		if (!part)
			continue;
		if (call || (lea && to == part->start))
			part->function = true;
		else if (!lea)
			add_jump(s, address + i, part);
	}
}

static void search_sections(struct search *s)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(s->object->elf, scn)) && !s->failed) {
		const Elf64_Shdr *header = elf64_getshdr(scn);
		bool code = header && header->sh_flags & SHF_EXECINSTR &&
			    header->sh_type == SHT_PROGBITS;
		Elf_Data *data = code ? elf_rawdata(scn, NULL) : NULL;

		if (data && data->d_buf)
			search_code(s, data->d_buf, data->d_size, header->sh_addr);
	}
}

/* Short jumps from a neighbour, which is decoded from its start. In doubt the part is none. */
static void search_neighbour(struct search *s, struct part *part, uint64_t start, uint64_t end)
{
	ZydisDecodedInstruction insn;
	ZydisDecoder decoder;
	size_t size = (size_t)(end - start);
	const uint8_t *code = end - start <= NEIGHBOUR_MAX ? code_at(s, start, size) : NULL;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
	part->function |= !code;
	for (size_t at = 0; code && at < size && !part->function; at += insn.length) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, code + at,
								size - at, &insn)))
			part->function = true;
		else if (insn.raw.imm[0].is_relative && insn.raw.imm[0].size == 8 &&
			 start + at + insn.length + (uint64_t)insn.raw.imm[0].value.s -
					 part->start <
				 part->end - part->start)
			add_jump(s, start + at, part);
	}
}

static void search_neighbours(struct search *s, struct part *part)
{
	const struct fay_code_symbol *code = s->object->code;
	size_t count = s->object->code_count;
	size_t first = FAY_COUNT_UNTIL(code, count, address, part->start);

	while (first > 0 && code[first - 1].reach + SHORT_MAX > part->start)
		first--;
	for (size_t i = first; i < count && code[i].address < part->end + SHORT_MAX; i++)
		if (code[i].end + SHORT_MAX > part->start && code[i].address != part->start)
			search_neighbour(s, part, code[i].address, code[i].end);
}

/* Whose the parts are. Each owner only changes from nobody to one and from one to several. */
static void find_owners(struct search *s)
{
	bool changed = true;

	for (size_t i = 0; i < s->part_count; i++)
		s->parts[i].owner = NOBODY;
	for (unsigned round = 0; changed && !s->failed; round++) {
		changed = false;
		s->failed = round == ROUNDS_MAX;
		for (size_t i = 0; i < s->jump_count; i++) {
			struct part *to = &s->parts[s->jumps[i].to];
			const struct part *in = part_at(s, s->jumps[i].from);
			uint64_t owner = in && !in->function ? in->owner : s->jumps[i].from;

			if (owner == NOBODY || owner == to->owner || to->owner == SEVERAL)
				continue;
			to->owner = to->owner == NOBODY ? owner : SEVERAL;
			changed = true;
		}
	}
}

void fay_object_find_parts(struct fay_object *object, const struct fay_taken *taken)
{
	struct search s = { .object = object };
	size_t words, entries;

	if (object->parts_found || !fay_object_sort_code(object))
		return;
	object->parts_found = true;
	if (find_candidates(&s) && s.part_count)
		search_sections(&s);
	for (size_t i = 0; i < s.part_count; i++) {
		uint64_t start = s.parts[i].start;

		fay_taken_in(taken, FAY_TAKEN_WORD, start, start + 1, &words);
		fay_taken_in(taken, FAY_TAKEN_ENTRY, start, start + 1, &entries);
		s.parts[i].function |= words || entries;
	}
	find_owners(&s);
	for (size_t i = 0; i < s.part_count && !s.failed; i++)
		if (is_part(&s.parts[i]))
			search_neighbours(&s, &s.parts[i]);
	find_owners(&s);
	for (size_t i = 0; i < s.part_count && !s.failed; i++)
		s.parts[i].symbol->joined = is_part(&s.parts[i]);
	free(s.parts);
	free(s.jumps);
}
