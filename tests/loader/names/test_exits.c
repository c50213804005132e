/* SPDX-License-Identifier: MIT */
/* What is known of a function's exits where they cannot be patched, so that the kernel may trap
 * there: all of them, or none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fay/loader.h"
#include "loader/flow/flow.h"

#define FROM 0x400000u
#define OTHER (FROM + 0x1000u) /* another function */
#define PART (FROM + 0x2000u)  /* a part of the function that lies elsewhere */
#define TABLES (FROM + 0x3000u)
#define NOTHING 0xffu

struct function {
	const uint8_t *bytes;
	size_t size;
	uint8_t trapped; /* where an int3 stands for something else; NOTHING: nowhere */
};

/* Of distances from the label of DISTANCES: the first leads there, the second to the part, too. */
static const int32_t tables[] = { 0, INT32_MAX, 0, (int32_t)(PART - FROM) - 23, INT32_MAX };

static size_t read_function(void *context, uint64_t address, void *to, size_t size)
{
	const struct function *function = context;
	uint64_t at = address - FROM;

	if (address >= TABLES && address - TABLES < sizeof(tables)) {
		at = address - TABLES;
		size = size < sizeof(tables) - at ? size : sizeof(tables) - at;
		memcpy(to, (const uint8_t *)tables + at, size);
		return size;
	}
	if (at >= function->size)
		return 0;
	if (size > function->size - at)
		size = function->size - at;
	memcpy(to, function->bytes + at, size);
	return size;
}

static enum fay_flow_place place(void *context, uint64_t address, uint64_t *start, uint64_t *end)
{
	const struct function *function = context;

	*start = address == OTHER ? OTHER : FROM;
	*end = address == OTHER ? OTHER + 16 : FROM + function->size;
	if (address == OTHER || address == FROM)
		return FAY_PLACE_FUNCTION;
	if (address == PART)
		return FAY_PLACE_PART;
	return address - FROM < function->size ? FAY_PLACE_INSIDE : FAY_PLACE_UNKNOWN;
}

static const uint64_t *taken(void *context, enum fay_taken_kind kind, uint64_t start, uint64_t end,
			     size_t *count)
{
	static const uint64_t entry = FROM;

	(void)context;
	*count = kind == FAY_TAKEN_ENTRY && start <= entry && entry < end;
	return &entry;
}

static bool trapped(void *context, uint64_t address)
{
	return address - FROM == ((const struct function *)context)->trapped;
}

struct expected {
	uint8_t at, kind;
	bool doubt, conditional;
	uint8_t unled;
};

#define SOMEWHERE "\x48\x8d\x05\x0a\0\0\0\x40\xf6\xc7\x01\x48\x0f\x45\xc6\xff\xe0"
/* lea table(%rip), %rdx; lea label(%rip), %rcx; movslq (%rdx,%rsi,4), %rax; add %rcx, %rax;
 * jmp *%rax; label: inc %edi; mov %edi, %eax; ret */
#define DISTANCES(table)                                                                           \
	"\x48\x8d\x15" table "\0\0\x48\x8d\x0d\x09\0\0\0\x48\x63\x04\xb2\x48\x01\xc8\xff\xe0"      \
	"\xff\xc7\x89\xf8\xc3"
static const struct {
	const char *bytes;
	size_t size;
	uint8_t trapped;
	const char *reason; /* why they cannot be patched */
	size_t count;
	struct expected exits[3];
} cases[] = {
	{ "\x31\xc0\xc3", 3, NOTHING, "no room", 1, { { 2, FAY_EXIT_RETURN, 0, 0, 0 } } },
	/* behind a call */
	{ "\xe8\xfb\x0f\0\0\xc3", 6, NOTHING, "no room", 1, { { 5, FAY_EXIT_RETURN, 0, 0, 0 } } },
	/* test %edi, %edi; jz other; call other; ret */
	{ "\x85\xff\x0f\x84\xf8\x0f\0\0\xe8\xf3\x0f\0\0\xc3",
	  14,
	  NOTHING,
	  "no room",
	  2,
	  { { 2, FAY_EXIT_JUMP, 0, 1, 0 }, { 13, FAY_EXIT_RETURN, 0, 0, 0 } } },
	/* a jump that leads out, or to what is behind it; then with something on the stack */
	{ SOMEWHERE "\x48\x89\xf8\xc3",
	  21,
	  NOTHING,
	  "indirect jump at +0xf",
	  2,
	  { { 15, FAY_EXIT_INDIRECT, 1, 0, 0 }, { 20, FAY_EXIT_RETURN, 0, 0, 0 } } },
	{ "\x53" SOMEWHERE "\x5b\xc3",
	  20,
	  NOTHING,
	  "indirect jump at +0x10",
	  1,
	  { { 19, FAY_EXIT_RETURN, 0, 0, 0 } } },
	/* distances from a label: all are known; one leads to a part */
	{ DISTANCES("\xf9\x2f"), 28, NOTHING, "", 1, { { 27, FAY_EXIT_RETURN, 0, 0, 0 } } },
	{ DISTANCES("\x01\x30"),
	  28,
	  NOTHING,
	  "indirect jump at +0x15",
	  2,
	  { { 21, FAY_EXIT_INDIRECT, 1, 0, 0 }, { 27, FAY_EXIT_RETURN, 0, 0, 0 } } },
	/* what nothing leads to, without a way out; then with a ret, a jump elsewhere, one to
	 * anywhere, a far return */
	{ "\x31\xc0\xeb\x04\x31\xc9\xeb\x00\xc3",
	  9,
	  NOTHING,
	  "code at +0x4 that nothing known leads to",
	  1,
	  { { 8, FAY_EXIT_RETURN, 0, 0, 0 } } },
	{ "\x31\xc0\xeb\x03\x31\xc9\xc3\xc3",
	  8,
	  NOTHING,
	  "code at +0x4",
	  2,
	  { { 6, FAY_EXIT_RETURN, 0, 0, 4 }, { 7, FAY_EXIT_RETURN, 0, 0, 0 } } },
	{ "\x31\xc0\xeb\x05\xe9\xf7\x0f\0\0\xc3",
	  10,
	  NOTHING,
	  "code at +0x4",
	  2,
	  { { 4, FAY_EXIT_JUMP, 0, 0, 4 }, { 9, FAY_EXIT_RETURN, 0, 0, 0 } } },
	{ "\x31\xc0\xeb\x02\xff\xe1\xc3",
	  7,
	  NOTHING,
	  "code at +0x4",
	  2,
	  { { 4, FAY_EXIT_INDIRECT, 1, 0, 4 }, { 6, FAY_EXIT_RETURN, 0, 0, 0 } } },
	{ "\x31\xc0\xf4\xeb\xfd", 5, NOTHING, "no exit: it never returns", 0, { { 0 } } },
	{ "\x31\xc0\xeb\x01\xcb\xc3", 6, NOTHING, "code at +0x4", 0, { { 0 } } },
	/* a trap over the ret; an int3 that is one */
	{ "\x31\xc0\x90\xcc\xc3", 5, 3, "another tracer's trap at +0x3", 0, { { 0 } } },
	{ "\xe8\xfb\x0f\0\0\xcc", 6, 5, "another tracer's trap at +0x5", 0, { { 0 } } },
	{ "\xe8\xfb\x0f\0\0\xcc", 6, NOTHING, "", 0, { { 0 } } },
	/* what is no function, or not understood */
	{ "\x31\xc0\x06\xc3", 4, NOTHING, "not an instruction", 0, { { 0 } } },
	{ "\x51\xc3", 2, NOTHING, "put on the stack", 0, { { 0 } } },
	{ "\xeb\x01\xb0\xc3\xc3", 5, NOTHING, "middle of an instruction", 0, { { 0 } } },
	{ "\x31\xc0\x90", 3, NOTHING, "runs on past its end", 0, { { 0 } } },
	/* test %edi, %edi; jne; ret; movb $0, 0x1: nothing is there, so it stops; elsewhere, of a
	 * thread, or by an index there may be something */
	{ "\x85\xff\x75\x01\xc3\xc6\x04\x25\x01\0\0\0\0",
	  13,
	  NOTHING,
	  "",
	  1,
	  { { 4, FAY_EXIT_RETURN, 0, 0, 0 } } },
	{ "\x85\xff\x75\x01\xc3\xc6\x04\x25\0\x10\0\0\0",
	  13,
	  NOTHING,
	  "runs on past its end",
	  0,
	  { { 0 } } },
	{ "\x85\xff\x75\x01\xc3\x64\xc6\x04\x25\x01\0\0\0\0",
	  14,
	  NOTHING,
	  "runs on past its end",
	  0,
	  { { 0 } } },
	{ "\x85\xff\x75\x01\xc3\x42\xc6\x04\x25\x01\0\0\0\0",
	  14,
	  NOTHING,
	  "runs on past its end",
	  0,
	  { { 0 } } },
};

static void test_exits(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct function function = { (const uint8_t *)cases[i].bytes, cases[i].size,
					     cases[i].trapped };
		struct fay_flow_program program = { .context = &function,
						    .read = read_function,
						    .place = place,
						    .taken = taken,
						    .trapped = trapped };
		struct fay_flow flow;

		assert_true(fay_flow_read(&program, FROM, FROM + cases[i].size, false, &flow));
		print_message("%zu: %s\n", i, flow.reason);
		if (*cases[i].reason)
			assert_non_null(strstr(flow.reason, cases[i].reason));
		else
			assert_string_equal(flow.reason, "");
		assert_int_equal(flow.exit_count, cases[i].count);
		for (size_t k = 0; k < flow.exit_count; k++) {
			assert_int_equal(flow.exits[k].at, FROM + cases[i].exits[k].at);
			assert_int_equal(flow.exits[k].kind, cases[i].exits[k].kind);
			assert_int_equal(flow.exits[k].doubt, cases[i].exits[k].doubt);
			assert_int_equal(flow.exits[k].conditional, cases[i].exits[k].conditional);
			assert_int_equal(flow.exits[k].unled,
					 cases[i].exits[k].unled ? FROM + cases[i].exits[k].unled
								 : 0);
		}
		if (*flow.reason)
			assert_int_equal(flow.window_count + flow.block_count + flow.redirect_count,
					 0);
		fay_flow_deinit(&flow);
	}
}

static void test_operands(void **state)
{
	static const uint8_t none = FAY_OPERAND_NO_REGISTER;
	static const struct {
		const char *bytes;
		size_t size;
		uint8_t form, base, index, scale; /* form 0: refused */
		int64_t value;
	} jumps[] = {
		{ "\xff\xe0", 2, FAY_OPERAND_REGISTER, 0, none, 0, 0 },
		{ "\x41\xff\xe3", 3, FAY_OPERAND_REGISTER, 11, none, 0, 0 },
		{ "\xff\x20", 2, FAY_OPERAND_MEMORY, 0, none, 0, 0 },
		{ "\xff\x64\xc8\xf0", 4, FAY_OPERAND_MEMORY, 0, 1, 8, -16 },
		{ "\xff\x24\xfd\x00\x10\x40\x00", 7, FAY_OPERAND_MEMORY, none, 7, 8, 0x401000 },
		{ "\xff\x25\x00\x10\x00\x00", 6, 0, 0, 0, 0, 0 }, /* relative to rip */
		{ "\x64\xff\x20", 3, 0, 0, 0, 0, 0 },             /* fs */
		{ "\x67\xff\x20", 3, 0, 0, 0, 0, 0 },             /* eax */
		{ "\xff\xd0", 2, 0, 0, 0, 0, 0 },                 /* a call */
		{ "\xff\x28", 2, 0, 0, 0, 0, 0 },                 /* a far jump */
		{ "\xe9\x00\x00\x00\x00", 5, 0, 0, 0, 0, 0 },
		{ "\xff", 1, 0, 0, 0, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(jumps) / sizeof(jumps[0]); i++) {
		struct fay_operand operand;
		bool is_jump =
			fay_jump_operand((const uint8_t *)jumps[i].bytes, jumps[i].size, &operand);

		print_message("jump %zu\n", i);
		assert_int_equal(is_jump, jumps[i].form != 0);
		if (!is_jump)
			continue;
		assert_int_equal(operand.form, jumps[i].form);
		assert_int_equal(operand.size, 8);
		assert_int_equal(operand.base, jumps[i].base);
		assert_int_equal(operand.index, jumps[i].index);
		if (operand.index != none)
			assert_int_equal(operand.scale, jumps[i].scale);
		assert_true(operand.value == jumps[i].value);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exits),
		cmocka_unit_test(test_operands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
