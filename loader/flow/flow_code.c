/* SPDX-License-Identifier: MIT */
/* A function's instructions: decoding, parts of it that lie elsewhere, where they may be entered,
 * which of them leave it. See flow_private.h. */
#include "flow_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/bisect.h"

#define INSTRUCTION_MAX 15u
/* a compiler may lead a switch's impossible case behind the function's end */
#define BEHIND_END 16u
#define TABLES_MAX 4096u

/* A part of a function may lie before its beginning: such an offset is below zero. */
static void sign_offsets(char *text)
{
	char *end, negative[24];

	for (char *at = text; (at = strstr(at, "+0x")); at++) {
		int64_t offset = (int64_t)strtoull(at + 1, &end, 16);
		int length = snprintf(negative, sizeof(negative), "-%#lx", -(uint64_t)offset);

		if (offset >= 0)
			continue;
		memmove(at + length, end, strlen(end) + 1);
		memcpy(at, negative, (size_t)length);
	}
}

bool fay_code_refuse(struct fay_code *code, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(code->reason, FAY_REASON_MAX, format, list);
	va_end(list);
	sign_offsets(code->reason);
	return false;
}

unsigned long fay_code_offset(const struct fay_code *code, uint64_t at)
{
	return (unsigned long)(at - code->regions[0].start);
}

static struct fay_code_region *region_of(struct fay_code *code, uint64_t at)
{
	for (size_t i = 0; i < code->region_count; i++)
		if (at >= code->regions[i].start && at < code->regions[i].end)
			return &code->regions[i];
	return NULL;
}

size_t fay_code_find(const struct fay_code *code, uint64_t at)
{
	const struct fay_code_region *region = region_of((struct fay_code *)code, at);
	size_t step;

	if (!region)
		return SIZE_MAX;
	step = region->first + FAY_COUNT_BELOW(code->steps + region->first, region->count, at, at);
	return step < region->first + region->count && code->steps[step].at == at ? step : SIZE_MAX;
}

bool fay_code_follows(const struct fay_code *code, size_t step)
{
	return step > 0 &&
	       code->steps[step - 1].at + code->steps[step - 1].length == code->steps[step].at;
}

static struct fay_step *step_add(struct fay_code *code)
{
	if (code->step_count == code->step_room) {
		size_t room = code->step_room ? 2 * code->step_room : 128;
		struct fay_step *grown = realloc(code->steps, room * sizeof(*grown));

		if (!grown)
			return NULL;
		code->steps = grown;
		code->step_room = room;
	}
	memset(&code->steps[code->step_count], 0, sizeof(*code->steps));
	return &code->steps[code->step_count++];
}

/* What else an instruction says of places: a table's address, or code's. Kept until all regions are
 * known. */
struct reading {
	struct fay_code *code;
	ZydisDecoder decoder;
	uint8_t *bytes;
	size_t mention_count;
	bool many_mentions;
	uint64_t mentions[TABLES_MAX];
};

static void mention(struct reading *reading, uint64_t address)
{
	for (size_t i = reading->mention_count; i-- > 0 && i + 8 > reading->mention_count;)
		if (reading->mentions[i] == address)
			return;
	if (reading->mention_count == TABLES_MAX)
		reading->many_mentions = true;
	else
		reading->mentions[reading->mention_count++] = address;
}

/* lea disp(%rip); absolute addresses of programs that are not position-independent: displacements
 * and immediate operands of 32 bits, mov of 64. */
static void note_mentions(struct reading *reading, const struct fay_step *step,
			  const ZydisDecodedInstruction *insn)
{
	bool legacy_default = insn->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
			      insn->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT;
	bool rip = insn->raw.modrm.offset && insn->raw.modrm.mod == 0 && insn->raw.modrm.rm == 5;

	if (rip && legacy_default && insn->opcode == 0x8d)
		mention(reading, step->at + step->length + (uint64_t)insn->raw.disp.value);
	else if (!rip && insn->raw.disp.size == 32 && insn->raw.disp.value >= 0x10000)
		mention(reading, (uint64_t)insn->raw.disp.value);
	if ((step->kind == FAY_STEP_PLAIN || step->kind == FAY_STEP_FAULTING) &&
	    insn->raw.imm[0].size >= 32 && !insn->raw.imm[0].is_relative &&
	    insn->raw.imm[0].value.u >= 0x10000)
		mention(reading, insn->raw.imm[0].size == 32 ? (uint32_t)insn->raw.imm[0].value.u
							     : insn->raw.imm[0].value.u);
}

uint8_t *fay_code_bytes(const struct fay_flow_program *program, uint64_t start, uint64_t end,
			uint64_t *hash, bool *unreadable)
{
	size_t size = (size_t)(end - start);
	uint8_t *bytes = malloc(size + INSTRUCTION_MAX);

	*unreadable = bytes && program->read(program->context, start, bytes, size) != size;
	if (*unreadable) {
		free(bytes);
		return NULL;
	}
	*hash = 0xcbf29ce484222325; /* FNV-1a */
	for (size_t i = 0; bytes && i < size; i++)
		*hash = (*hash ^ bytes[i]) * 0x100000001b3;
	return bytes;
}

static bool stops_at_null(const struct fay_code *code, const ZydisDecodedInstruction *insn)
{
	const struct fay_flow_program *program = code->program;
	uint64_t address;
	uint8_t byte;

	return fay_step_stores_near_null(insn, &address) &&
	       program->read(program->context, address, &byte, 1) == 0;
}

static bool decode_region(struct reading *reading, struct fay_code_region *region)
{
	struct fay_code *code = reading->code;
	size_t size = (size_t)(region->end - region->start);
	bool unreadable;

	free(reading->bytes);
	reading->bytes = fay_code_bytes(code->program, region->start, region->end, &region->hash,
					&unreadable);
	if (unreadable)
		return fay_code_refuse(code, "is not readable in the process");
	if (!reading->bytes)
		return code->no_memory = true, false;
	region->first = code->step_count;
	for (size_t at = 0; at < size;) {
		const uint8_t *bytes = reading->bytes + at;
		ZydisDecodedInstruction insn;
		struct fay_step *step;

		if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&reading->decoder, NULL, bytes,
								size - at, &insn)))
			return fay_code_refuse(code,
					       "has bytes at +%#lx that are not an instruction",
					       fay_code_offset(code, region->start + at));
		step = step_add(code);
		if (!step)
			return code->no_memory = true, false;
		step->at = region->start + at;
		step->length = insn.length;
		step->kind = (uint8_t)fay_step_kind_of(&insn, bytes);
		if (stops_at_null(code, &insn))
			step->kind = FAY_STEP_STOP;
		/* What the depth is before it is found out later; until then it is how it
		 * changes. */
		step->depth = 0;
		if (!fay_step_depth_after(&insn, bytes, &step->depth))
			step->depth = INT32_MIN;
		else if (step->kind == FAY_STEP_PLAIN &&
			 insn.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && insn.opcode == 0xc9)
			step->depth = INT32_MAX; /* to 0 */
		if (insn.raw.imm[0].is_relative && insn.raw.imm[0].size) {
			step->target = step->at + step->length + (uint64_t)insn.raw.imm[0].value.s;
			step->is_short = insn.raw.imm[0].size != 32;
		}
		step->flags = (uint8_t)fay_step_flags_of(&insn);
		step->away = fay_step_goes_away(&insn);
		step->moves_stack = fay_step_moves_stack(&insn);
		code->splits |= fay_step_splits(&insn, bytes);
		if (code->program->keeps_faults && step->kind == FAY_STEP_PLAIN &&
		    fay_step_may_fault(&insn, bytes))
			step->kind = FAY_STEP_FAULTING;
		note_mentions(reading, step, &insn);
		at += insn.length;
	}
	region->count = code->step_count - region->first;
	return true;
}

static bool region_add(struct reading *reading, uint64_t start, uint64_t end)
{
	struct fay_code *code = reading->code;

	if (code->region_count == FAY_FLOW_REGIONS_MAX || end <= start ||
	    end - start > FAY_FLOW_BYTES_MAX - code->bytes)
		return fay_code_refuse(code, "is longer than %u bytes, or has more than %u parts",
				       FAY_FLOW_BYTES_MAX, FAY_FLOW_REGIONS_MAX);
	for (size_t i = 0; i < code->region_count; i++)
		if (start < code->regions[i].end && end > code->regions[i].start)
			return fay_code_refuse(code, "has parts that overlap");
	code->regions[code->region_count++] =
		(struct fay_code_region){ .start = start, .end = end };
	code->bytes += (size_t)(end - start);
	return decode_region(reading, &code->regions[code->region_count - 1]);
}

/* Whether the address is in a part of the function that lies elsewhere: then it is read now. */
static bool enter_part(struct reading *reading, uint64_t address, bool *is_part)
{
	const struct fay_flow_program *program = reading->code->program;
	uint64_t start, end;

	*is_part = program->place(program->context, address, &start, &end) == FAY_PLACE_PART;
	return !*is_part || region_add(reading, start, end);
}

static bool is_stub(const struct fay_code *code, uint64_t address)
{
	uint8_t bytes[16];
	size_t at = 0;

	if (code->program->read(code->program->context, address, bytes, sizeof(bytes)) !=
	    sizeof(bytes))
		return false;
	if (!memcmp(bytes, "\xf3\x0f\x1e\xfa", 4))
		at = 4;
	at += bytes[at] == 0xf2;
	return bytes[at] == 0xff && bytes[at + 1] == 0x25;
}

/* A jump out of all regions: to a part, or an exit. */
static bool resolve_jump(struct reading *reading, size_t index)
{
	struct fay_code *code = reading->code;
	struct fay_step *step = &code->steps[index];
	uint64_t start, end, target = step->target;
	enum fay_flow_place place;
	bool is_part;

	if (region_of(code, target))
		return true;
	if (!enter_part(reading, target, &is_part))
		return false;
	step = &code->steps[index];
	if (is_part)
		return true;
	if (step->kind == FAY_STEP_FIXED)
		return fay_code_refuse(code, "is left at +%#lx in an unusual way",
				       fay_code_offset(code, step->at));
	place = code->program->place(code->program->context, target, &start, &end);
	step->exit = true;
	/* an unwind entry without a symbol may be a part */
	step->careful = place != FAY_PLACE_FUNCTION && !is_stub(code, target);
	return true;
}

static bool resolve_jumps(struct reading *reading)
{
	for (size_t i = 0; i < reading->code->step_count; i++)
		if (reading->code->steps[i].target &&
		    reading->code->steps[i].kind != FAY_STEP_CALL && !resolve_jump(reading, i))
			return false;
	return true;
}

bool fay_code_add_table(struct fay_code *code, uint64_t table, uint64_t from)
{
	const struct fay_distances *last =
		code->table_count ? &code->tables[code->table_count - 1] : NULL;
	struct fay_distances *grown;

	if (last && last->table == table && last->from == from)
		return true;
	if (!(code->table_count & (code->table_count - 1))) {
		grown = realloc(code->tables, (2 * code->table_count + 1) * sizeof(*grown));
		if (!grown)
			return code->no_memory = true, false;
		code->tables = grown;
	}
	code->tables[code->table_count++] = (struct fay_distances){ table, from };
	return true;
}

/* Reads what is mentioned as a table of 32-bit distances from itself, as long as they lead into the
 * function. */
static bool read_table(struct reading *reading, uint64_t table)
{
	struct fay_code *code = reading->code;
	int32_t entries[64];

	for (size_t read = 0; read < FAY_FLOW_TABLE_MAX; read += 64) {
		size_t got = code->program->read(code->program->context, table + 4 * read, entries,
						 sizeof(entries)) /
			     4;

		for (size_t i = 0; i < got; i++) {
			uint64_t to = table + (uint64_t)(int64_t)entries[i];
			struct fay_code_region *region = region_of(code, to);
			bool is_part = false;
			size_t step;

			if (!region && to >= code->regions[0].end &&
			    to < code->regions[0].end + BEHIND_END)
				continue;
			if (!region && (!enter_part(reading, to, &is_part) || !is_part))
				return !*code->reason && !code->no_memory;
			step = fay_code_find(code, to);
			if (step == SIZE_MAX)
				return true; /* no table, or its end */
			fay_step_enter_by(&code->steps[step], table);
			if (!fay_code_add_table(code, table, table))
				return false;
		}
		if (got < 64)
			return true;
	}
	return fay_code_refuse(code, "has a table that does not end");
}

static bool resolve_mentions(struct reading *reading)
{
	struct fay_code *code = reading->code;

	if (reading->many_mentions)
		return fay_code_refuse(code, "has too many addresses in it");
	for (size_t i = 0; i < reading->mention_count; i++) {
		uint64_t address = reading->mentions[i];
		size_t step = fay_code_find(code, address);

		if (step != SIZE_MAX) {
			fay_step_enter(&code->steps[step]);
			code->steps[step].label = true;
		} else if (!region_of(code, address) && !read_table(reading, address))
			return false;
	}
	return true;
}

bool fay_code_read(struct fay_code *code, uint64_t start, uint64_t end)
{
	struct reading *reading = malloc(sizeof(*reading));
	bool read;

	if (!reading)
		return code->no_memory = true, false;
	/* but for the mentions, which are many bytes */
	memset(reading, 0, offsetof(struct reading, mentions));
	reading->code = code;
	ZydisDecoderInit(&reading->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisDecoderEnableMode(&reading->decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
	read = region_add(reading, start, end);
	if (!code->alone)
		read = read && resolve_jumps(reading) && resolve_mentions(reading) &&
		       resolve_jumps(reading) && fay_code_find_ways(code);
	free(reading->bytes);
	free(reading);
	return read;
}

void fay_code_deinit(struct fay_code *code)
{
	free(code->steps);
	free(code->tables);
}
