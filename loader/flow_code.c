/* SPDX-License-Identifier: MIT */
/* A function's instructions: decoding, parts of it that lie elsewhere, where they may be entered,
 * which of them leave it. See flow_code.h. */
#include "flow_code.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <Zydis/Zydis.h>

#include "bisect.h"

#define INSTRUCTION_MAX 15u
/* a compiler may lead a switch's impossible case behind the function's end */
#define BEHIND_END 16u
#define TABLES_MAX 4096u
#define PADDING_MOST 64u /* bytes between two functions */

bool fay_code_refuse(struct fay_code *code, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(code->reason, FAY_REASON_MAX, format, list);
	va_end(list);
	return false;
}

static unsigned long offset_of(const struct fay_code *code, uint64_t at)
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

static bool is_nop(const ZydisDecodedInstruction *insn, const uint8_t *bytes)
{
	if (insn->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT)
		return insn->opcode == 0xcc ||
		       (insn->opcode == 0x90 && bytes[0] != 0xf3 && !insn->raw.rex.B);
	return insn->opcode_map == ZYDIS_OPCODE_MAP_0F && insn->opcode == 0x1f;
}

static enum fay_step_kind kind_of_default(const ZydisDecodedInstruction *insn)
{
	switch (insn->opcode) {
	case 0xc2:
	case 0xc3: return FAY_STEP_RETURN;
	case 0xe8: return FAY_STEP_CALL;
	case 0xe9:
	case 0xeb: return FAY_STEP_JUMP;
	case 0x70 ... 0x7f: return FAY_STEP_BRANCH;
	case 0xf4: return FAY_STEP_STOP;
	case 0xca:
	case 0xcb:
	case 0xcd:
	case 0xcf:
	case 0xe0 ... 0xe3:
	case 0xf1: return FAY_STEP_FIXED;
	case 0xc6:
	/* xabort, xbegin */
	case 0xc7:
		return insn->raw.modrm.mod == 3 && insn->raw.modrm.reg == 7 ? FAY_STEP_FIXED
									    : FAY_STEP_PLAIN;
	case 0xff:
		if (insn->raw.modrm.reg == 2)
			return FAY_STEP_CALL;
		if (insn->raw.modrm.reg == 4)
			return FAY_STEP_INDIRECT;
		return insn->raw.modrm.reg == 3 || insn->raw.modrm.reg == 5 ? FAY_STEP_FIXED
									    : FAY_STEP_PLAIN;
	default: return FAY_STEP_PLAIN;
	}
}

static enum fay_step_kind kind_of(const ZydisDecodedInstruction *insn, const uint8_t *bytes)
{
	if (is_nop(insn, bytes))
		return FAY_STEP_PADDING;
	if (insn->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return FAY_STEP_PLAIN;
	if (insn->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT)
		return kind_of_default(insn);
	if (insn->opcode_map != ZYDIS_OPCODE_MAP_0F)
		return FAY_STEP_PLAIN;
	switch (insn->opcode) {
	case 0x0b: return FAY_STEP_STOP;
	case 0xb9:
	case 0xff: return FAY_STEP_STOP; /* ud1, ud0 */
	case 0x80 ... 0x8f: return FAY_STEP_BRANCH;
	case 0x05:
	case 0x07:
	case 0x34:
	case 0x35: return FAY_STEP_FIXED;
	default: return FAY_STEP_PLAIN;
	}
}

size_t fay_padding_length(const uint8_t *bytes, size_t size)
{
	ZydisDecodedInstruction insn;
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
	if (!size ||
	    !ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, size, &insn)))
		return 0;
	return kind_of(&insn, bytes) == FAY_STEP_PADDING ? insn.length : 0;
}

/* Opcodes of the first two maps that do nothing but set flags: without a group's operations, which
 * are told by modrm.reg. */
static bool only_sets_flags(const ZydisDecodedInstruction *insn)
{
	bool first = insn->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT;

	if (insn->opcode_map == ZYDIS_OPCODE_MAP_0F38)
		/* ptest, vtestps, vtestpd */
		return insn->opcode == 0x17 || insn->opcode == 0x0e || insn->opcode == 0x0f;
	if (insn->opcode_map == ZYDIS_OPCODE_MAP_0F)
		return insn->opcode == 0xa3 || (insn->opcode == 0xba && insn->raw.modrm.reg == 4) ||
		       insn->opcode == 0x2e || insn->opcode == 0x2f;
	if (!first)
		return false;
	switch (insn->opcode) {
	case 0x38 ... 0x3d: /* cmp */
	case 0x84:          /* test */
	case 0x85:
	case 0xa8:
	case 0xa9:
	case 0x9d: /* popf, sahf, cmc, clc, stc, std, cld */
	case 0x9e:
	case 0xf5:
	case 0xf8:
	case 0xf9:
	case 0xfc:
	case 0xfd: return true;
	case 0x80 ... 0x83: return insn->raw.modrm.reg == 7;
	case 0xf6:
	case 0xf7: return insn->raw.modrm.reg <= 1;
	default: return false;
	}
}

static enum fay_step_flags flags_of(const ZydisDecodedInstruction *insn)
{
	if (only_sets_flags(insn))
		return FAY_FLAGS_SET;
	if (insn->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return FAY_FLAGS_KEPT;
	if (insn->opcode_map == ZYDIS_OPCODE_MAP_0F)
		switch (insn->opcode) {
		case 0x10 ... 0x17:
		case 0x1e ... 0x1f:
		case 0x28 ... 0x29:
		case 0x57:
		case 0x6e ... 0x6f:
		case 0x7e ... 0x7f:
		case 0xb6 ... 0xb7:
		case 0xbe ... 0xbf:
		case 0xc8 ... 0xcf:
		case 0xd6:
		case 0xef: return FAY_FLAGS_KEPT;
		default: return FAY_FLAGS_USED;
		}
	if (insn->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT)
		return FAY_FLAGS_USED;
	switch (insn->opcode) {
	case 0x50 ... 0x5f:
	case 0x63:
	case 0x86 ... 0x8b:
	case 0x8d:
	case 0x8f ... 0x99:
	case 0xa4 ... 0xa5:
	case 0xaa ... 0xab:
	case 0xb0 ... 0xbf:
	case 0xc6 ... 0xc7:
	case 0xc9: return FAY_FLAGS_KEPT;
	default: return FAY_FLAGS_USED;
	}
}

/* mov, or lea, of something else than rbp to rsp: to another stack, or, in OCaml, to a handler's
 * frame. */
static bool moves_stack(const ZydisDecodedInstruction *insn)
{
	bool legacy = insn->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
		      insn->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY;
	bool to_rm = legacy && insn->opcode == 0x89 && insn->raw.modrm.mod == 3 &&
		     insn->raw.modrm.rm == 4 && !insn->raw.rex.B;
	bool to_reg = legacy && (insn->opcode == 0x8b || insn->opcode == 0x8d) &&
		      insn->raw.modrm.reg == 4 && !insn->raw.rex.R;
	bool of_rsp = insn->raw.modrm.rm == 4 && insn->opcode == 0x8d;

	if (to_rm)
		return insn->raw.modrm.reg != 5 || insn->raw.rex.R;
	return to_reg && !of_rsp && (insn->raw.modrm.rm != 5 || insn->raw.rex.B);
}

/* Other than by an access of the stack, or of the module's own data. */
static bool may_fault(const ZydisDecodedInstruction *insn, const uint8_t *bytes)
{
	bool first = insn->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
		     insn->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY;
	uint8_t mod = insn->raw.modrm.mod, rm = insn->raw.modrm.rm;

	if (first && ((insn->opcode >= 0xa4 && insn->opcode <= 0xa7) ||
		      (insn->opcode >= 0xaa && insn->opcode <= 0xaf)))
		return true; /* strings */
	if (first && (insn->opcode | 1) == 0xf7 && insn->raw.modrm.reg >= 6)
		return true; /* div, idiv */
	if (!insn->raw.modrm.offset || mod == 3 || (first && insn->opcode == 0x8d))
		return false;
	if (rm == 4 && !insn->raw.rex.B && (bytes[insn->raw.modrm.offset + 1] & 0x3f) == 0x24)
		return false;                            /* rsp, without an index */
	return rm != 5 || (mod != 0 && insn->raw.rex.B); /* neither rip nor rbp */
}

bool fay_code_faults(const uint8_t *bytes, size_t size)
{
	ZydisDecodedInstruction insn;
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (size_t at = 0; at < size; at += insn.length) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes + at,
								size - at, &insn)))
			return false;
		if (may_fault(&insn, bytes + at))
			return true;
	}
	return false;
}

/* How the instruction changes the stack's depth; false: that is not known. */
static bool depth_after(const ZydisDecodedInstruction *insn, const uint8_t *bytes, int32_t *depth)
{
	const uint8_t *modrm = bytes + insn->raw.modrm.offset;

	if (insn->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
	    insn->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT)
		return true;
	switch (insn->opcode) {
	case 0xc8:
	case 0x87: /* enter, xchg */
	case 0x94: return insn->opcode == 0x94 && insn->raw.rex.B;
	case 0x50 ... 0x57:
	case 0x68:
	case 0x6a:
	case 0x9c: *depth += 8; return true;
	case 0x58 ... 0x5f:
	case 0x9d: *depth -= 8; return insn->opcode != 0x5c || insn->raw.rex.B;
	case 0xc9: *depth = 0; return true;
	case 0x8f: *depth -= 8; return true;
	case 0xff:
		if (insn->raw.modrm.reg == 6)
			*depth += 8;
		return true;
	case 0x81:
	case 0x83:
		if (insn->raw.modrm.mod != 3 || insn->raw.modrm.rm != 4 || insn->raw.rex.B)
			return true;
		if (insn->raw.modrm.reg == 0)
			*depth -= (int32_t)insn->raw.imm[0].value.s;
		if (insn->raw.modrm.reg == 5)
			*depth += (int32_t)insn->raw.imm[0].value.s;
		return insn->raw.modrm.reg == 0 || insn->raw.modrm.reg == 5 ||
		       insn->raw.modrm.reg == 7;
	case 0x8d:
		if (insn->raw.modrm.reg != 4 || insn->raw.rex.R)
			return true;
		*depth -= (int32_t)insn->raw.disp.value;
		return insn->raw.modrm.rm == 4 && modrm[1] == 0x24;
	case 0x89:
	case 0x31:
	case 0x01:
	case 0x29:
	case 0x21: return insn->raw.modrm.mod != 3 || insn->raw.modrm.rm != 4 || insn->raw.rex.B;
	case 0x8b:
	case 0x03:
	case 0x2b: return insn->raw.modrm.reg != 4 || insn->raw.rex.R;
	default: return true;
	}
}

/* What else an instruction says of places: a table's address, or code's. Kept until all regions are
 * known. */
struct reading {
	struct fay_code *code;
	ZydisDecoder decoder;
	uint8_t *bytes;
	uint64_t mentions[TABLES_MAX];
	size_t mention_count;
	bool many_mentions;
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

static bool decode_region(struct reading *reading, struct fay_code_region *region)
{
	struct fay_code *code = reading->code;
	size_t size = (size_t)(region->end - region->start);

	free(reading->bytes);
	reading->bytes = malloc(size + INSTRUCTION_MAX);
	if (!reading->bytes)
		return code->no_memory = true, false;
	if (code->program->read(code->program->context, region->start, reading->bytes, size) !=
	    size)
		return fay_code_refuse(code, "is not readable in the process");
	region->first = code->step_count;
	for (size_t at = 0; at < size;) {
		const uint8_t *bytes = reading->bytes + at;
		ZydisDecodedInstruction insn;
		struct fay_step *step;

		if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&reading->decoder, NULL, bytes,
								size - at, &insn)))
			return fay_code_refuse(code, "has bytes at +%#lx that are no instruction",
					       offset_of(code, region->start + at));
		step = step_add(code);
		if (!step)
			return code->no_memory = true, false;
		step->at = region->start + at;
		step->length = insn.length;
		step->kind = (uint8_t)kind_of(&insn, bytes);
		/* What the depth is before it is found out later; until then it is how it changes.
		 * */
		step->depth = 0;
		if (!depth_after(&insn, bytes, &step->depth))
			step->depth = INT32_MIN;
		else if (step->kind == FAY_STEP_PLAIN &&
			 insn.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && insn.opcode == 0xc9)
			step->depth = INT32_MAX; /* to 0 */
		if (insn.raw.imm[0].is_relative && insn.raw.imm[0].size) {
			step->target = step->at + step->length + (uint64_t)insn.raw.imm[0].value.s;
			step->is_short = insn.raw.imm[0].size != 32;
		}
		step->flags = (uint8_t)flags_of(&insn);
		step->moves_stack = moves_stack(&insn);
		if (code->program->keeps_faults && step->kind == FAY_STEP_PLAIN &&
		    may_fault(&insn, bytes))
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
		return fay_code_refuse(code, "leaves itself at +%#lx in an unusual way",
				       offset_of(code, step->at));
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

/* False: the reason says why, or there is no memory. */
static bool table_add(struct fay_code *code, uint64_t table)
{
	uint64_t *grown;

	if (code->table_count && code->tables[code->table_count - 1] == table)
		return true;
	if (!(code->table_count & (code->table_count - 1))) {
		grown = realloc(code->tables, (2 * code->table_count + 1) * sizeof(*grown));
		if (!grown)
			return code->no_memory = true, false;
		code->tables = grown;
	}
	code->tables[code->table_count++] = table;
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
			code->steps[step].entered = true;
			if (!table_add(code, table))
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

		if (step != SIZE_MAX)
			code->steps[step].entered = code->steps[step].label = true;
		else if (!region_of(code, address) && !read_table(reading, address))
			return false;
	}
	return true;
}

/*
 * Data may look like an address in the midst of an instruction. If it is one, the instruction may
 * be overwritten no more than one that begins there.
 */
static void mark_taken(struct fay_code *code, uint64_t address, enum fay_taken_kind kind)
{
	size_t step = SIZE_MAX;

	for (unsigned back = 0; back < INSTRUCTION_MAX && step == SIZE_MAX; back++) {
		step = fay_code_find(code, address - back);
		if (step == SIZE_MAX)
			continue;
		code->steps[step].entered = true;
		/* Where calls return to is known to collectors of garbage. */
		code->steps[step].label |=
			kind == FAY_TAKEN_WORD && !(fay_code_follows(code, step) &&
						    code->steps[step - 1].kind == FAY_STEP_CALL);
		code->steps[step].handler |= kind == FAY_TAKEN_HANDLER;
		if (back && code->steps[step].kind == FAY_STEP_PLAIN)
			code->steps[step].kind = FAY_STEP_FIXED;
	}
}

/* Marks what others tell, and instructions behind calls. */
static bool mark_entered(struct fay_code *code)
{
	for (size_t r = 0; r < code->region_count; r++)
		for (enum fay_taken_kind kind = 0; kind < FAY_TAKEN_KINDS; kind++) {
			size_t count;
			const uint64_t *taken = code->program->taken(code->program->context, kind,
								     code->regions[r].start,
								     code->regions[r].end, &count);

			if (!taken || (kind == FAY_TAKEN_DOUBT && count))
				return fay_code_refuse(code, "is in a file whose relocations or "
							     "unwind tables are not understood");
			for (size_t i = 0; i < count; i++) {
				if (kind == FAY_TAKEN_ENTRY && taken[i] != code->regions[r].start)
					return fay_code_refuse(code, "has another entry at +%#lx",
							       offset_of(code, taken[i]));
				mark_taken(code, taken[i], kind);
			}
		}
	for (size_t i = 1; i < code->step_count; i++)
		if (fay_code_follows(code, i) && (code->steps[i - 1].kind == FAY_STEP_CALL ||
						  code->steps[i - 1].kind == FAY_STEP_FIXED))
			code->steps[i].entered = true;
	return true;
}

static bool join_jumps(struct fay_code *code)
{
	for (size_t i = 0; i < code->step_count; i++) {
		struct fay_step *step = &code->steps[i];
		size_t to;

		if (!step->target || step->exit)
			continue;
		to = fay_code_find(code, step->target);
		/* of a part of itself: which of its exits are whose is not known */
		if (step->kind == FAY_STEP_CALL) {
			if (to != SIZE_MAX && to != code->regions[0].first)
				return fay_code_refuse(code, "calls a part of itself at +%#lx",
						       offset_of(code, step->at));
			continue;
		}
		if (to == SIZE_MAX) { /* past a lock prefix, or into something else */
			to = fay_code_find(code, step->target - 1);
			if (to == SIZE_MAX)
				return fay_code_refuse(code,
						       "has a jump at +%#lx into an instruction",
						       offset_of(code, step->at));
			code->steps[to].entered = true;
			code->steps[to].kind = code->steps[to].kind == FAY_STEP_PLAIN
						       ? FAY_STEP_FIXED
						       : code->steps[to].kind;
			continue;
		}
		if (step->kind == FAY_STEP_FIXED) {
			code->steps[to].entered = true;
			continue;
		}
		step->next_join = code->steps[to].first_join;
		code->steps[to].first_join = (uint32_t)i + 1;
	}
	return true;
}

/* Ways in that are known: from the function's begin, and from all that is entered. Depths of the
 * stack on the way. */
static bool reach(struct fay_code *code)
{
	uint32_t *waiting = malloc((2 * code->step_count + 1) * sizeof(*waiting));
	int32_t *change = malloc((code->step_count + 1) * sizeof(*change));
	size_t count = 0;

	if (!waiting || !change) {
		free(waiting);
		free(change);
		return code->no_memory = true, false;
	}
	for (size_t i = 0; i < code->step_count; i++) {
		change[i] = code->steps[i].depth;
		code->steps[i].depth = -1;
	}
	for (unsigned round = 0; round < 2; round++) {
		for (size_t i = 0; i < code->step_count; i++) {
			bool begins = i == code->regions[0].first;

			if (code->steps[i].reached ||
			    (round == 0 ? !begins : !code->steps[i].entered))
				continue;
			code->steps[i].reached = true;
			code->steps[i].depth = begins ? 0 : -1;
			waiting[count++] = (uint32_t)i;
			while (count) {
				size_t at = waiting[--count], next[2], ways = 0;
				const struct fay_step *step = &code->steps[at];
				int32_t depth = step->depth < 0 || change[at] == INT32_MIN ? -1
						: change[at] == INT32_MAX
							? 0
							: step->depth + change[at];

				if (change[at] == INT32_MAX)
					depth = 0;
				if (!fay_step_ends(step) && at + 1 < code->step_count &&
				    fay_code_follows(code, at + 1))
					next[ways++] = at + 1;
				if (step->target && !step->exit && step->kind != FAY_STEP_CALL &&
				    fay_code_find(code, step->target) != SIZE_MAX)
					next[ways++] = fay_code_find(code, step->target);
				for (size_t k = 0; k < ways; k++) {
					struct fay_step *to = &code->steps[next[k]];

					/* Where two ways disagree, behind a call that does not
					 * return, nothing is known. */
					if (to->reached && (to->depth == depth || to->depth < 0))
						continue;
					to->depth = to->reached ? -1 : depth;
					to->reached = true;
					waiting[count++] = (uint32_t)next[k];
				}
			}
		}
	}
	free(waiting);
	free(change);
	return true;
}

/* The function that begins behind an address, with nothing but padding in between; 0: none does. */
static uint64_t function_behind(const struct fay_code *code, uint64_t address)
{
	uint8_t bytes[PADDING_MOST + INSTRUCTION_MAX];
	size_t size = code->program->read(code->program->context, address, bytes, sizeof(bytes));
	uint64_t start, end;

	for (size_t at = 0; at < PADDING_MOST && at < size;) {
		enum fay_flow_place place =
			code->program->place(code->program->context, address + at, &start, &end);
		size_t length = fay_padding_length(bytes + at, size - at);

		if (place == FAY_PLACE_FUNCTION)
			return address + at;
		if (place != FAY_PLACE_UNKNOWN || !length || bytes[at] == 0xcc)
			return 0;
		at += length;
	}
	return 0;
}

/* Behind a region's last instruction nothing of it follows, unless it runs on into another
 * function, which is an exit, too. */
static bool check_ends(struct fay_code *code)
{
	for (size_t r = 0; r < code->region_count; r++) {
		size_t last = code->regions[r].first + code->regions[r].count;

		while (last-- > code->regions[r].first &&
		       code->steps[last].kind == FAY_STEP_PADDING)
			;
		if (last + 1 == code->regions[r].first)
			return fay_code_refuse(code, "has no instruction");
		if (fay_step_ends(&code->steps[last]) || code->steps[last].kind == FAY_STEP_CALL ||
		    !code->steps[last].reached)
			continue;
		code->steps[last].runs_on = function_behind(code, code->regions[r].end);
		if (!code->steps[last].runs_on || (code->steps[last].kind != FAY_STEP_PLAIN &&
						   code->steps[last].kind != FAY_STEP_BRANCH))
			return fay_code_refuse(code, "runs on behind its end");
	}
	return true;
}

/*
 * What nothing known leads to was found by no table that was read: then there may be others.
 * Padding is no code; behind a call that does not return there may be anything, which counts as
 * entered.
 */
static bool check_reached(struct fay_code *code)
{
	for (size_t i = 0; i < code->step_count; i++)
		if (!code->steps[i].reached && code->steps[i].kind != FAY_STEP_PADDING &&
		    code->steps[i].kind != FAY_STEP_STOP)
			return fay_code_refuse(code,
					       "has code at +%#lx that nothing known leads to",
					       offset_of(code, code->steps[i].at));
	return true;
}

static bool find_returns(struct fay_code *code)
{
	for (size_t i = 0; i < code->step_count; i++) {
		if (code->steps[i].kind != FAY_STEP_RETURN)
			continue;
		if (code->steps[i].depth > 0)
			return fay_code_refuse(code,
					       "returns at +%#lx to what it has put on the stack",
					       offset_of(code, code->steps[i].at));
		code->steps[i].exit = true;
	}
	return true;
}

bool fay_code_read(struct fay_code *code, uint64_t start, uint64_t end)
{
	struct reading *reading = calloc(1, sizeof(*reading));
	bool read;

	if (!reading)
		return code->no_memory = true, false;
	reading->code = code;
	ZydisDecoderInit(&reading->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisDecoderEnableMode(&reading->decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
	read = region_add(reading, start, end) && resolve_jumps(reading) &&
	       resolve_mentions(reading) && resolve_jumps(reading);
	read = read && mark_entered(code) && join_jumps(code) && reach(code) && check_ends(code) &&
	       check_reached(code) && fay_code_resolve_indirect(code);
	read = read && find_returns(code);
	free(reading->bytes);
	free(reading);
	return read;
}

void fay_code_deinit(struct fay_code *code)
{
	free(code->steps);
	free(code->tables);
}
