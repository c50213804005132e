/* SPDX-License-Identifier: MIT */
/*
 * Go's functions have no entries in .eh_frame. The table by which Go itself walks its stacks tells
 * of each, for ranges of its code, how many bytes lie between the stack pointer and the return
 * address: all that a walk needs, as frames of Go are never found by rbp.
 *
 * Format: go/src/runtime/symtab.go (pcHeader, functab, _func, funcFlag, step()), the same since
 * Go 1.18 but for one word of _func since 1.20. The file may say anything: every word is read
 * within the table, and ranges only go on.
 */
#include <string.h>

#include "fay/stacks.h"
#include "unwind_private.h"

#define MAGIC_1_18 0xfffffff0u
#define MAGIC_1_20 0xfffffff1u
/* In the header. */
#define FUNCTIONS 8u
#define TEXT_START 24u
#define STEPS 56u /* where pctab is */
#define TABLE 64u /* where the functions are */
#define HEADER 72u
/* In a function's own entry. */
#define STACK_STEPS 16u
#define FLAGS_1_18 37u
#define FLAGS_1_20 41u
/* It is the outermost, or sets the stack pointer to something else: its frame is not known. */
#define UNWALKED (1u << 0 | 1u << 1)

struct go_table {
	const uint8_t *bytes;
	size_t size;
	uint64_t text, steps, functions, flags;
};

/* 0 behind the table's end. */
static uint64_t word(const struct go_table *t, uint64_t at, unsigned size)
{
	uint64_t value = 0;
	if (at <= t->size && t->size - at >= size)
		memcpy(&value, t->bytes + at, size);
	return value;
}

/* Seven bits at a time; 0, which ends a function's steps, behind the table's end. */
static uint64_t varint(const struct go_table *t, uint64_t *at)
{
	uint64_t value = 0, byte = 0x80;
	for (unsigned shift = 0; byte & 0x80 && shift < 35; shift += 7) {
		byte = word(t, (*at)++, 1);
		value |= (byte & 0x7f) << shift;
	}
	return value;
}

static uint32_t rule_of(int64_t above)
{
	if (above < 0 || above % 8 || above / 8 >= FAY_STACK_OFFSET_MAX)
		return FAY_STACK_END;
	return fay_stack_rule(FAY_STACK_RSP, (uint32_t)(above / 8) + 1, 0);
}

/* false: no memory. */
static bool read_function(const struct go_table *t, uint64_t entry, uint64_t start, uint64_t end,
			  struct fay_unwind_rows *rows)
{
	uint64_t at = t->steps + word(t, entry + STACK_STEPS, 4), place = start;
	int64_t above = -1;
	if (!word(t, entry + STACK_STEPS, 4) || word(t, entry + t->flags, 1) & UNWALKED)
		return fay_unwind_add(rows, start, FAY_STACK_END);
	while (place < end) {
		uint64_t change = varint(t, &at), length = varint(t, &at);
		above += change & 1 ? -(int64_t)(change >> 1) - 1 : (int64_t)(change >> 1);
		if (!length || (!change && place != start))
			break;
		if (!fay_unwind_add(rows, place, rule_of(above)))
			return false;
		place += length;
	}
	return place >= end || fay_unwind_add(rows, place, FAY_STACK_END);
}

bool fay_unwind_read_go(const uint8_t *table, size_t size, uint64_t text,
			struct fay_unwind_rows *rows)
{
	struct go_table t = { .bytes = table, .size = size };
	uint64_t magic = word(&t, 0, 4), count = word(&t, FUNCTIONS, 8), start, end = 0;
	if (size < HEADER || (magic != MAGIC_1_18 && magic != MAGIC_1_20) ||
	    word(&t, 7, 1) != sizeof(uint64_t))
		return true;
	t.flags = magic == MAGIC_1_20 ? FLAGS_1_20 : FLAGS_1_18;
	t.text = text ? text : word(&t, TEXT_START, 8);
	t.steps = word(&t, STEPS, 8);
	t.functions = word(&t, TABLE, 8);
	if (!t.text || t.steps >= size || t.functions >= size ||
	    count > (size - t.functions) / (2 * sizeof(uint32_t)))
		return true;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t pair = t.functions + 8 * i;
		start = t.text + word(&t, pair, 4);
		end = t.text + word(&t, pair + 8, 4);
		if (!read_function(&t, t.functions + word(&t, pair + 4, 4), start, end, rows))
			return false;
	}
	return !end || fay_unwind_add(rows, end, FAY_STACK_END);
}
