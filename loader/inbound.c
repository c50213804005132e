/* SPDX-License-Identifier: MIT */
/*
 * Jumps from one function into the first bytes of another. glibc's mempcpy, for one, sets its result and jumps behind memcpy's first instruction;
 * a jump written there would be entered in its middle. The text of each module that has points is searched, once for all of them:
 *
 *	at every byte: is it the opcode of a direct branch (e9, 0f 8x, e8, c7 f8 with 32 bits; eb, 7x, e0..e3 with 8), which leads there?
 *	32 bits: taken for a branch. That other bytes look like one happens once in a few thousand million bytes.
 *	8 bits: that is common, so the function around it is decoded from its start; only if an instruction begins there is it one. What does not
 *	decode, or has no known start, is taken for one.
 *
 * Branches of the function itself are not looked at here: fay_patchable(), or fay_flow_read(), has seen them.
 */
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <Zydis/Zydis.h>

#include "bisect.h"
#include "target.h"

#define CHUNK (1u << 20)
#define BRANCH_MAX 6u           /* bytes of the longest branch that is looked for */
#define TEXT_MAX (UINT64_C(1) << 32) /* bytes of code in one mapping; a branch reaches half as far */
#define DECODE_MAX (1u << 20)   /* bytes from a function's start to a place in it */

struct search {
	struct fay_session *session;
	const struct fay_zones *present;
	int memory;
	struct fay_module *module;
	const struct fay_range *range;
	uint8_t *overwritten; /* a bit for each byte of the range: overwritten by a jump, but not its first byte */
	uint8_t *text;        /* CHUNK + BRANCH_MAX bytes, from `at` */
	uint64_t at;
};

/* Bytes from the site to which nothing may jump, but for the first: the jump; up to a marker, or an exit, whose instructions before it are run elsewhere. */
static uint64_t closed_bytes(const struct fay_site *site)
{
	uint8_t overwritten = fay_site_overwritten(site);

	if (site->kind == FAY_SITE_EXIT)
		return site->length > overwritten ? site->length : overwritten;
	return site->back + 1u > overwritten && site->kind == FAY_SITE_PLACE ? site->back + 1u : overwritten;
}

static bool mark_sites(struct search *s)
{
	uint64_t start = s->range->start, size = s->range->end - start;
	bool any = false;

	for (size_t i = 0; i < s->session->order_count; i++) {
		const struct fay_site *site = &s->session->sites[s->session->order[i]];
		uint64_t at = site->site - start;

		if (!site->usable || site->site < start || at + FAY_HOP_BYTES > size)
			continue;
		any = true;
		for (uint64_t b = site->kind == FAY_SITE_HOLE ? at : at + 1; b < at + closed_bytes(site) && b < size; b++)
			s->overwritten[b / 8] |= (uint8_t)(1u << b % 8);
	}
	return any;
}

/* Whether an instruction begins at `source`: known from the start of the function that holds it. */
static bool instruction_begins(struct search *s, uint64_t source)
{
	uint64_t vaddr = source - s->range->bias, start = fay_object_start_before(s->module->object, vaddr);
	size_t size = vaddr - start;
	uint8_t *bytes;
	bool begins = true;
	ZydisDecoder decoder;

	if (start == UINT64_MAX || size > DECODE_MAX || start + s->range->bias < s->range->start)
		return true;
	bytes = malloc(size + BRANCH_MAX + 16);
	if (!bytes || fay_read_program(s->present, s->memory, start + s->range->bias, bytes, size + BRANCH_MAX) < size + 2) {
		free(bytes);
		return true;
	}
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (size_t at = 0; at < size;) {
		ZydisDecodedInstruction insn;

		if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes + at, size + BRANCH_MAX - at, &insn)))
			break; /* doubt */
		at += insn.length;
		begins = at <= size;
	}
	free(bytes);
	return begins;
}

static int found(struct search *s, uint64_t source, uint64_t to, bool is_short)
{
	struct fay_site *site = fay_site_around(s->session, to);
	const struct fay_point *point;
	char reason[FAY_REASON_MAX];
	uint64_t own;

	if (!site || to - site->site >= closed_bytes(site))
		return 0;
	point = &s->session->points[site->point];
	own = point->function.address - point->offset;
	if (source >= own && source < point->function.address + point->function.size)
		return 0;
	if (is_short && !instruction_begins(s, source))
		return 0;
	snprintf(reason, sizeof(reason), "is entered at +%#lx by a jump from another function (at %s+%#lx)", (unsigned long)(to - own),
		 s->module->name, (unsigned long)(source - s->range->bias));
	return fay_site_refuse(s->session, site, reason);
}

static bool is_overwritten(const struct search *s, uint64_t address)
{
	uint64_t at = address - s->range->start;

	return at < s->range->end - s->range->start && s->overwritten[at / 8] >> at % 8 & 1;
}

static uint64_t rel32_target(const struct search *s, size_t i, unsigned length)
{
	int32_t distance;

	memcpy(&distance, s->text + i + length - 4, 4);
	return s->at + i + length + (uint64_t)(int64_t)distance;
}

enum opcode { NO_BRANCH, SHORT, NEAR, TWO_BYTES };

/* What a branch may begin with. */
static const uint8_t opcodes[256] = {
	[0x70 ... 0x7f] = SHORT, [0xe0 ... 0xe3] = SHORT, [0xeb] = SHORT, [0xe8] = NEAR, [0xe9] = NEAR, [0x0f] = TWO_BYTES, [0xc7] = TWO_BYTES,
};

/* `count` bytes of the chunk; BRANCH_MAX more are there. */
static int search_chunk(struct search *s, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint8_t kind = opcodes[s->text[i]], next = s->text[i + 1];
		uint64_t to;

		if (kind == NO_BRANCH)
			continue;
		if (kind == TWO_BYTES && (s->text[i] == 0x0f ? (next & 0xf0) != 0x80 : next != 0xf8))
			continue;
		to = kind == SHORT ? s->at + i + 2 + (uint64_t)(int64_t)(int8_t)next : rel32_target(s, i, kind == NEAR ? 5 : 6);
		if (is_overwritten(s, to) && found(s, s->at + i, to, kind == SHORT))
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
		got = fay_read_program(s->present, s->memory, s->at, s->text, end - s->at < CHUNK + BRANCH_MAX ? (size_t)(end - s->at) : CHUNK + BRANCH_MAX);
		code = got < count ? -2 : search_chunk(s, count);
	}
	return code;
}

static bool has_site(const struct search *s)
{
	for (size_t i = 0; i < s->session->order_count; i++) {
		uint64_t site = s->session->sites[s->session->order[i]].site;

		if (site >= s->range->start && site < s->range->end)
			return true;
	}
	return false;
}

static int search_module(struct search *s, struct fay_error *error)
{
	for (size_t i = 0; i < s->module->range_count; i++) {
		int code = 0;

		s->range = &s->module->ranges[i];
		if (s->range->end - s->range->start > TEXT_MAX && !has_site(s))
			continue;
		if (s->range->end - s->range->start > TEXT_MAX)
			return fay_error_set(error, FAY_E_LIMIT, "process %d: the code of %s is longer than 4 GiB, and is not searched", (int)s->session->pid, s->module->name);
		s->overwritten = calloc((s->range->end - s->range->start) / 8 + 2, 1);
		if (!s->overwritten)
			return fay_error_set(error, FAY_E_LIMIT, "out of memory");
		if (s->range->placed && mark_sites(s))
			code = search_range(s);
		free(s->overwritten);
		if (code)
			return code == -2 ? fay_error_set(error, FAY_E_INTERNAL, "process %d: the code of %s cannot be read", (int)s->session->pid, s->module->name) :
					    fay_error_set(error, FAY_E_LIMIT, "out of memory");
	}
	return 0;
}

int fay_inbound_search(struct fay_session *session, const struct fay_zones *present, int memory, struct fay_error *error)
{
	struct search s = { .session = session, .present = present, .memory = memory, .text = malloc(CHUNK + BRANCH_MAX) };
	int code = s.text ? 0 : fay_error_set(error, FAY_E_LIMIT, "out of memory");

	for (size_t i = 0; i < session->target->module_count && !code; i++) {
		s.module = &session->target->modules[i];
		if (s.module->object)
			code = search_module(&s, error);
	}
	free(s.text);
	return code;
}
