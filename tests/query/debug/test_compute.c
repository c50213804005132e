/* SPDX-License-Identifier: MIT */
/* What programs of fay_debug_compute() give for places that located.S has, as a probe runs them. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "query/debug/scopes_private.h"
#include "query/runtime/compute.c"

#define PLACE 0x400000u        /* where the event happens */
#define NOWHERE (PLACE + 4096) /* cannot be read */
#define RAX UINT64_C(1000)
#define RBX UINT64_C(4000)
#define RSP UINT64_C(5000)

/* Memory in which no two words are equal. */
static uint64_t byte_at(uint64_t address)
{
	return (address * 0x9e3779b97f4a7c15u) >> 56;
}

static uint64_t word_at(uint64_t address, unsigned bytes)
{
	uint64_t word = 0;
	for (unsigned i = 0; i < bytes; i++)
		word |= byte_at(address + i) << 8 * i;
	return word;
}

int64_t fay_try_read(void *to, uint64_t size, uint64_t address)
{
	uint64_t word = word_at(address, (unsigned)size);
	if (address == NOWHERE)
		return -1;
	memcpy(to, &word, size);
	return 0;
}

static struct fay_event event_at(uint64_t address)
{
	struct fay_event event = { .address = address, .stack_pointer = RSP, .pid = 7 };
	for (unsigned i = 0; i < 16; i++)
		event.reg[i] = 1000 * (i + 1);
	for (unsigned i = 0; i < 6; i++)
		event.arg[i] = 77000 + i;
	return event;
}

struct compiled {
	const char *name;
	struct fay_debug_program program;
	bool there;
	uint64_t pc; /* in the object */
};

static bool find(Dwarf_Die *parent, const char *name, Dwarf_Die *found)
{
	bool more = !dwarf_child(parent, found);
	while (more && (!dwarf_diename(found) || strcmp(dwarf_diename(found), name)))
		more = !dwarf_siblingof(found, found);
	return more;
}

static struct compiled compile(const char *function_name, const char *name, bool address)
{
	struct compiled compiled = { .name = name };
	struct fay_debug_file file;
	struct fay_debug_scopes scopes;
	struct fay_error error;
	Dwarf_Die unit, function, variable;
	Dwarf_CU *begun = NULL;
	uint64_t left = 1000000;
	int fd = open(FAY_LOCATED, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fay_debug_file_open(&file, fd, FAY_LOCATED, &error), 0);
	assert_int_equal(dwarf_get_units(file.dwarf, NULL, &begun, NULL, NULL, &unit, NULL), 0);
	assert_true(find(&unit, function_name, &function));
	assert_int_equal(dwarf_lowpc(&function, &compiled.pc), 0);
	assert_true(fay_debug_scopes_at(&unit, compiled.pc, &left, &scopes));
	assert_true(find(&function, name, &variable));
	compiled.there = fay_debug_compute(&file, &scopes, &variable, compiled.pc, address,
					   &compiled.program);
	fay_debug_file_close(&file);
	close(fd);
	return compiled;
}

static struct fay_query_computed run(const struct compiled *compiled, uint64_t address,
				     struct fay_compute_calls *calls)
{
	struct fay_event event = event_at(address);
	uint64_t words[FAY_COMPUTE_WORDS];
	memcpy(words, compiled->program.bytes, sizeof(words));
	return calls ? fay_query_compute_call(&event, words[0], words[1], words[2], calls)
		     : fay_query_compute(&event, words[0], words[1], words[2]);
}

static void test_values(void **state)
{
	static const struct {
		const char *name;
		uint64_t value;
	} all[] = {
		{ "in_rax", RAX },
		{ "in_r15", 16000 },
		{ "five", 5 },
		{ "implicit", 0x04030201 },
		{ "minus_three", (uint64_t)-3 },
		{ "masked_oddly", RBX & 7 },
		{ "masked_by_register", RBX & 7 },
		{ "times_register", RBX * 7 },
		{ "either", 7 },
		{ "numbers", (~(uint64_t)-RAX) ^ 5 },
		{ "shifts", (uint64_t)((int64_t)((uint64_t)-RAX << 8) >> 4) >> 3 },
		{ "quotient", (uint64_t)-142 },
		{ "relations", 1 },
		{ "equals", 3 },
		{ "arranged", 4 },
		{ "smaller", RAX },
		{ "skipped", 1 },
		{ "narrow", 0 },
		{ "narrow_unsigned", (uint32_t)-RAX >> 4 },
		{ "masks", ((RBX + 1) & 255) + (uint16_t)-RAX + (uint32_t)-(RAX + 1) },
		{ "long_number", 0x8807060504030201 ^ RAX },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct compiled compiled = compile("located", all[i].name, false);
		if (!compiled.there)
			fail_msg("%s has no program", all[i].name);
		struct fay_query_computed got = run(&compiled, PLACE, NULL);
		if (!got.known || got.value != all[i].value)
			fail_msg("%s: %#lx, expected %#lx", all[i].name, got.value, all[i].value);
	}
}

static void test_memory(void **state)
{
	static const struct {
		const char *name;
		uint64_t address;
		unsigned bytes;
	} all[] = {
		{ "at_rsp", RSP + 8, 4 },          { "in_frame", RSP - 12, 4 },
		{ "three", RAX + 3000 + 2000, 4 }, { "twice_rsp", 2 * RSP, 4 },
		{ "taken_register", 5 - RAX, 4 },  { "pointer", RSP + 8, 8 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct compiled value = compile("located", all[i].name, false),
				address = compile("located", all[i].name, true);
		assert_true(value.there && address.there);
		struct fay_query_computed got = run(&value, PLACE, NULL),
					  lies = run(&address, PLACE, NULL);
		if (got.value != word_at(all[i].address, all[i].bytes) ||
		    lies.value != all[i].address)
			fail_msg("%s: %#lx at %#lx", all[i].name, got.value, lies.value);
	}
	struct compiled object = compile("located", "in_object", true);
	assert_int_equal(run(&object, PLACE, NULL).value, PLACE - object.pc + 64);
	struct compiled twice = compile("located", "behind_twice", false);
	uint64_t first = word_at(RAX, 8);
	assert_int_equal(run(&twice, PLACE, NULL).value, word_at(word_at(first, 8), 4));
}

/* What cannot be read has no value, and no other either. */
static void test_unreadable(void **state)
{
	struct compiled object = compile("located", "in_object", false);
	(void)state;
	assert_true(run(&object, PLACE, NULL).known);
	assert_false(run(&object, NOWHERE - 64 + object.pc, NULL).known);
	assert_int_equal(run(&object, NOWHERE - 64 + object.pc, NULL).value, 0);
	struct compiled none = { .there = true };
	assert_false(run(&none, PLACE, NULL).known);
}

static void test_no_program(void **state)
{
	static const char *const names[] = {
		"in_rip",     "in_xmm0",       "pieces",   "plus_alone", "deref_alone",
		"stacked",    "after_value",   "nothing",  "cut",        "unknown",
		"unsaid",     "elsewhere",     "cut_list", "nowhere",    "structure",
		"read_three", "real",          "backward", "beyond",     "given_elsewhere",
		"given_cell", "given_nothing", "within"
	};
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (compile("located", names[i], false).there)
			fail_msg("%s has a program", names[i]);
	assert_false(compile("located", "in_rax", true).there);
	assert_false(compile("by_itself", "of_itself", false).there);
}

/* Of a call that was seen to begin, of another function, process or place of the stack, and of one
 * whose record another has taken over or torn. */
static void test_calls(void **state)
{
	struct fay_compute_calls *calls = calloc(1, sizeof(*calls));
	struct compiled given = compile("located", "given", false),
			more = compile("located", "given_more", false);
	struct fay_event begin = event_at(PLACE);
	(void)state;
	assert_true(calls && given.there && given.program.entries && more.there);
	assert_false(run(&given, PLACE, calls).known);
	assert_false(run(&given, PLACE, NULL).known);
	fay_query_call_begins(&begin, calls); /* rsp there: 8 below the frame's address */
	assert_true(run(&given, PLACE, calls).known);
	assert_int_equal(run(&given, PLACE, calls).value, 77000);
	assert_int_equal(run(&more, PLACE, calls).value, 77005 + RBX);
	assert_false(run(&given, PLACE + 16, calls).known);
	begin.pid = 8;
	fay_query_call_begins(&begin, calls);
	assert_false(run(&given, PLACE, calls).known);
	begin.pid = 7;
	fay_query_call_begins(&begin, calls);
	struct fay_compute_call *record = call_at(calls, begin.stack_pointer);
	record->arguments[3]++;
	assert_false(run(&given, PLACE, calls).known);
	assert_int_equal(run(&given, PLACE, calls).value, 0);
	begin.stack_pointer += 16;
	memset(calls, 0, sizeof(*calls));
	fay_query_call_begins(&begin, calls);
	assert_false(run(&given, PLACE, calls).known);
	free(calls);
}

/* Any bytes are a program, which ends and reads nothing but the event. */
static void test_any_bytes(void **state)
{
	uint64_t seed = 25, known = 0;
	(void)state;
	for (unsigned i = 0; i < 200000; i++) {
		struct compiled any = { .there = true };
		for (size_t at = 0; at < FAY_COMPUTE_BYTES; at++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			any.program.bytes[at] = (uint8_t)(seed >> 56);
		}
		known += run(&any, PLACE, NULL).known;
	}
	assert_true(known > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),     cmocka_unit_test(test_memory),
		cmocka_unit_test(test_unreadable), cmocka_unit_test(test_no_program),
		cmocka_unit_test(test_calls),      cmocka_unit_test(test_any_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
