/* SPDX-License-Identifier: MIT */
/*
 * Jumps from one function into the first bytes of another. glibc's mempcpy, for one, sets its
 * result and jumps behind memcpy's first instruction; a jump written there would be entered in its
 * middle. The text of each module that has points is searched, once for all of them:
 *
 *	at every byte: is it the opcode of a direct branch (e9, 0f 8x, e8, c7 f8 with 32 bits; eb,
 *	  7x, e0..e3 with 8), or of a lea, which leads there?
 *	Are it and the next three such an address, in a program that is not position-independent?
 *	a lea: taken for one
 *	else: small numbers and short branches look like one often enough, so the function around,
 *	  or the section, is decoded from its start; only if an instruction has that there is it
 *	  one. What does not decode, or has no known start, is taken for one.
 *
 * What else is done with a function's address is judged in inbound_base.c.
 *
 * The function itself and its parts are not looked at here: fay_place_judge(), or fay_flow_read(),
 * has seen them.
 */
#include "plan_private.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <Zydis/Zydis.h>

#include "loader/bisect.h"
#include "loader/names/target.h"

#define CHUNK (1u << 20)
#define CALL_BYTES 5u
/* bytes of the longest branch that is looked for, or of a call and the beginning of what is behind
 * it */
#define BRANCH_MAX 8u
/* bytes of code in one mapping; a branch reaches half as far */
#define TEXT_MAX (UINT64_C(1) << 32)
#define DATA_MAX 16u
#define MARKS_MAX 64u /* ranges of a module with sites */
#define ENTRIES_MAX (1u << 24)
#define DECODE_MAX (1u << 20) /* bytes from a function's start to a place in it */

struct search {
	struct fay_plan *plan;
	struct fay_program_text *program;
	struct fay_module *module;
	const struct fay_range *range;
	struct marks { /* of the module's ranges that have sites */
		uint64_t start, end;
		/* a bit for each byte: overwritten by a jump, but not its first byte */
		uint8_t *overwritten;
	} marks[MARKS_MAX];
	size_t mark_count;
	uint8_t *text; /* CHUNK + BRANCH_MAX bytes, from `at` */
	uint64_t at;
	struct data {                /* sections of the module's file that are no code */
		uint64_t start, end; /* in the process */
		const uint8_t *bytes;
	} data[DATA_MAX];
	size_t data_count;
	uint64_t entries_left; /* of tables that may be read */
};

/* Those without any bytes in the file are left out. */
static void find_data(struct search *s)
{
	Elf_Scn *scn = NULL;

	s->data_count = 0;
	s->entries_left = ENTRIES_MAX;
	while ((scn = elf_nextscn(s->module->object->elf, scn)) && s->data_count < DATA_MAX) {
		const Elf64_Shdr *header = elf64_getshdr(scn);
		bool wanted = header && header->sh_flags & SHF_ALLOC &&
			      !(header->sh_flags & (SHF_EXECINSTR | SHF_WRITE)) &&
			      header->sh_type == SHT_PROGBITS;
		Elf_Data *data = wanted ? elf_rawdata(scn, NULL) : NULL;

		if (data && data->d_buf && data->d_size)
			s->data[s->data_count++] =
				(struct data){ header->sh_addr + s->range->bias,
					       header->sh_addr + data->d_size + s->range->bias,
					       data->d_buf };
	}
}

static void mark_sites(struct search *s, struct marks *marks)
{
	uint64_t start = marks->start, size = marks->end - start;

	for (size_t i = 0; i < s->plan->order_count; i++) {
		const struct fay_site *site = &s->plan->sites[s->plan->order[i]];
		uint64_t at = site->site - start;

		if (!site->usable || site->site < start || at + FAY_HOP_BYTES > size)
			continue;
		for (uint64_t b = site->kind == FAY_SITE_HOLE ? at : at + 1;
		     b < at + fay_site_entered(site) && b < size; b++)
			marks->overwritten[b / 8] |= (uint8_t)(1u << b % 8);
	}
}

/* Where decoding may begin to get to an address: the last start of a function, or of a section. */
static uint64_t start_before(struct search *s, uint64_t vaddr)
{
	uint64_t start = fay_object_start_before(s->module->object, vaddr);
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(s->module->object->elf, scn))) {
		const Elf64_Shdr *header = elf64_getshdr(scn);

		if (header && header->sh_flags & SHF_EXECINSTR && vaddr >= header->sh_addr &&
		    vaddr - header->sh_addr < header->sh_size &&
		    (start == UINT64_MAX || start < header->sh_addr))
			return header->sh_addr;
	}
	return start;
}

/* Whether a branch's opcode is at `source`, perhaps behind prefixes, or an address of 32 bits:
 * known from the start of the function that holds it. */
static bool instruction_has(struct search *s, uint64_t source, bool address)
{
	uint64_t vaddr = source - s->range->bias, start = start_before(s, vaddr);
	size_t size = vaddr - start;
	uint8_t *bytes;
	ZydisDecodedInstruction insn = { 0 };
	ZydisDecoder decoder;
	size_t at;

	if (start == UINT64_MAX || size > DECODE_MAX || start + s->range->bias < s->range->start)
		return true;
	bytes = malloc(size + BRANCH_MAX + 16);
	if (!bytes || fay_text_program(s->program, start + s->range->bias, bytes,
				       size + BRANCH_MAX) < size + 2) {
		free(bytes);
		return true;
	}
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (at = 0; at < size; at += insn.length)
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes + at,
								size + BRANCH_MAX - at, &insn)))
			break; /* doubt */
	free(bytes);
	if (at <= size)
		return at < size || !address;
	at -= insn.length;
	if (insn.raw.imm[0].is_relative)
		return !address && size < at + insn.raw.imm[0].offset;
	/* what is relative to rip is a distance */
	return address && ((size == at + insn.raw.disp.offset && insn.raw.disp.size == 32 &&
			    (insn.raw.modrm.mod != 0 || insn.raw.modrm.rm != 5)) ||
			   (size == at + insn.raw.imm[0].offset && insn.raw.imm[0].size >= 32));
}

enum opcode { NO_BRANCH, SHORT, NEAR, TWO_BYTES, LEA, ADDRESS };

static int found(struct search *s, uint64_t source, uint64_t to, enum opcode kind)
{
	struct fay_site *site = fay_site_around(s->plan, to);
	struct fay_point *point;
	char reason[FAY_REASON_MAX];
	uint64_t own;

	if (!site || to - site->site >= fay_site_entered(site))
		return 0;
	point = &s->plan->points[site->point];
	own = point->function.address - point->offset;
	if (fay_point_has(point, source) ||
	    (kind != LEA && !instruction_has(s, source, kind == ADDRESS)))
		return 0;
	point->others_end = true;
	snprintf(reason, sizeof(reason), "%s at +%#lx by %s another function (at %s+%#lx)",
		 kind == LEA || kind == ADDRESS ? "may be entered" : "is entered",
		 (unsigned long)(to - own),
		 kind == LEA || kind == ADDRESS ? "what has its address," : "a jump from",
		 s->module->name, (unsigned long)(source - s->range->bias));
	return fay_site_refuse(s->plan, site, reason);
}

static bool is_overwritten(const struct search *s, uint64_t address)
{
	for (size_t i = 0; i < s->mark_count; i++) {
		uint64_t at = address - s->marks[i].start;

		if (at < s->marks[i].end - s->marks[i].start)
			return s->marks[i].overwritten[at / 8] >> at % 8 & 1;
	}
	return false;
}

static uint64_t rel32_target(const struct search *s, size_t i, unsigned length)
{
	int32_t distance;

	memcpy(&distance, s->text + i + length - 4, 4);
	return s->at + i + length + (uint64_t)(int64_t)distance;
}

/* What a branch, or the address of code, may begin with. */
static const uint8_t opcodes[256] = {
	[0x70 ... 0x7f] = SHORT, [0xe0 ... 0xe3] = SHORT, [0xeb] = SHORT,     [0xe8] = NEAR,
	[0xe9] = NEAR,           [0x0f] = TWO_BYTES,      [0xc7] = TWO_BYTES, [0x8d] = LEA,
};

static bool in_marks(const struct search *s, uint64_t address)
{
	for (size_t i = 0; i < s->mark_count; i++)
		if (address - s->marks[i].start < s->marks[i].end - s->marks[i].start)
			return true;
	return false;
}

static bool in_one_function(struct search *s, uint64_t source, uint64_t to)
{
	struct fay_object *object = s->module->object;

	return fay_object_start_before(object, source - s->range->bias) ==
	       fay_object_start_before(object, to - s->range->bias);
}

/* A table of 32-bit distances from itself that a function reads: none of another function's code
 * but its begin. */
static int search_table(struct search *s, uint64_t source, uint64_t table)
{
	const struct data *in = s->data;

	while (in < s->data + s->data_count && table - in->start >= in->end - in->start)
		in++;
	for (uint64_t at = table; in < s->data + s->data_count && in->end - at >= 4; at += 4) {
		int32_t distance;
		uint64_t to;

		memcpy(&distance, in->bytes + (at - in->start), 4);
		to = table + (uint64_t)(int64_t)distance;
		if (!in_marks(s, to) || (at == table && in_one_function(s, source, to)))
			return 0;
		if (s->entries_left-- == 0)
			return -3;
		if (is_overwritten(s, to) && found(s, source, to, LEA))
			return -1;
	}
	return 0;
}

/* `count` bytes of the chunk; BRANCH_MAX more are there. */
static int search_chunk(struct search *s, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint8_t kind = opcodes[s->text[i]], next = s->text[i + 1];
		uint64_t to;

		if (kind == NO_BRANCH)
			continue;
		if ((kind == TWO_BYTES &&
		     (s->text[i] == 0x0f ? (next & 0xf0) != 0x80 : next != 0xf8)) ||
		    (kind == LEA && (next & 0xc7) != 5))
			continue;
		to = kind == SHORT ? s->at + i + 2 + (uint64_t)(int64_t)(int8_t)next
				   : rel32_target(s, i, kind == NEAR ? 5 : 6);
		if (is_overwritten(s, to) && found(s, s->at + i, to, kind))
			return -1;
		if (s->text[i] == 0xe8)
			fay_inbound_note_flags(s->plan, s->text + i + CALL_BYTES, to);
		if (kind == LEA) {
			int code = search_table(s, s->at + i, to);

			if (!code)
				code = fay_inbound_refuse_base(s->plan, s->program, s->module->name,
							       s->range->bias, s->at + i, to);
			if (code)
				return code;
		}
	}
	return 0;
}

/* Of a program that lies where it was linked to. */
static int search_addresses(struct search *s, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t word;

		memcpy(&word, s->text + i, 4);
		if (is_overwritten(s, word) && found(s, s->at + i, word, ADDRESS))
			return -1;
	}
	return 0;
}

static int search_range(struct search *s)
{
	uint64_t end = s->range->end;
	int code = 0;

	for (s->at = s->range->start; s->at < end && !code; s->at += CHUNK) {
		size_t count = end - s->at < CHUNK ? (size_t)(end - s->at) : CHUNK;
		size_t got;

		memset(s->text, 0, CHUNK + BRANCH_MAX);
		got = fay_text_program(s->program, s->at, s->text,
				       end - s->at < CHUNK + BRANCH_MAX ? (size_t)(end - s->at)
									: CHUNK + BRANCH_MAX);
		code = got < count ? -2 : search_chunk(s, count);
		if (!code && !s->range->bias)
			code = search_addresses(s, count);
	}
	return code;
}

static int search_ranges(struct search *s)
{
	int code = 0;

	for (size_t i = 0; i < s->module->range_count && !code; i++) {
		s->range = &s->module->ranges[i];
		if (!s->range->placed)
			continue;
		find_data(s);
		code = search_range(s);
	}
	return code;
}

/* The ranges that have sites. */
static int find_marks(struct search *s)
{
	s->mark_count = 0;
	for (size_t i = 0; i < s->module->range_count; i++) {
		const struct fay_range *range = &s->module->ranges[i];
		struct marks *marks = &s->marks[s->mark_count];

		if (!range->placed || !fay_site_between(s->plan, range->start, range->end))
			continue;
		if (range->end - range->start > TEXT_MAX || s->mark_count == MARKS_MAX)
			return -4;
		*marks = (struct marks){ range->start, range->end,
					 calloc((range->end - range->start) / 8 + 2, 1) };
		if (!marks->overwritten)
			return -1;
		s->mark_count++;
		mark_sites(s, marks);
	}
	return 0;
}

static int search_module(struct search *s, struct fay_error *error)
{
	const char *name = s->module->name;
	int pid = (int)s->plan->pid, code = find_marks(s);

	if (!code && s->mark_count)
		code = search_ranges(s);
	for (size_t i = 0; i < s->mark_count; i++)
		free(s->marks[i].overwritten);
	switch (code) {
	case 0: return 0;
	case -4:
		return fay_error_set(error, FAY_E_LIMIT,
				     "process %d: the code of %s is longer than 4 GiB, or in more "
				     "than %u pieces, and is not searched",
				     pid, name, MARKS_MAX);
	case -3:
		return fay_error_set(error, FAY_E_LIMIT,
				     "process %d: %s has more tables than are searched", pid, name);
	case -2:
		return fay_error_set(error, FAY_E_REFUSED,
				     "process %d: the code of %s cannot be read", pid, name);
	default: return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	}
}

int fay_inbound_search(struct fay_plan *plan, struct fay_program_text *program,
		       struct fay_error *error)
{
	struct search s = { .plan = plan, .program = program, .text = malloc(CHUNK + BRANCH_MAX) };
	int code = s.text ? 0 : fay_error_set(error, FAY_E_LIMIT, "out of memory");

	for (size_t i = 0; i < plan->target->module_count && !code; i++) {
		s.module = &plan->target->modules[i];
		if (s.module->object)
			code = search_module(&s, error);
	}
	free(s.text);
	return code;
}
