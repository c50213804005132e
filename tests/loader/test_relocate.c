/* SPDX-License-Identifier: MIT */
/* Displaced instructions, without a process: what is copied, corrected and refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "loader/flow/flow.h"

#define FROM 0x555555554000u
#define TO 0x555555000000u

static bool displace(const char *bytes, size_t size, uint64_t to, struct fay_displaced *displaced,
		     char *reason)
{
	uint8_t padded[32];

	memset(padded, 0x90, sizeof(padded));
	memcpy(padded, bytes, size);
	reason[0] = 0;
	return fay_displace(padded, sizeof(padded), FAY_JUMP_BYTES, FROM, to, displaced, reason);
}

static void test_copied(void **state)
{
	struct fay_displaced displaced;
	char reason[FAY_REASON_MAX];
	int32_t rel;

	/* push rbp; mov rbp, rsp; sub rsp, 0x10: 8 bytes */
	assert_true(displace("\x55\x48\x89\xe5\x48\x83\xec\x10", 8, TO, &displaced, reason));
	assert_int_equal(displaced.length, 8);
	assert_int_equal(displaced.count, 3);
	assert_int_equal(displaced.map[2].from, 4);
	assert_memory_equal(displaced.code, "\x55\x48\x89\xe5\x48\x83\xec\x10\xe9", 9);
	memcpy(&rel, displaced.code + 9, 4);
	assert_int_equal(TO + 13 + (int64_t)rel, FROM + 8);
}

static void test_rip_relative(void **state)
{
	struct fay_displaced displaced;
	char reason[FAY_REASON_MAX];
	int32_t disp;

	/* mov rax, [rip + 0x100] */
	assert_true(displace("\x48\x8b\x05\x00\x01\x00\x00", 7, TO, &displaced, reason));
	memcpy(&disp, displaced.code + 3, 4);
	assert_int_equal(TO + 7 + (int64_t)disp, FROM + 7 + 0x100);
	/* cmpb $0, 0x100(%rip): an immediate behind the displacement */
	assert_true(displace("\x80\x3d\x00\x01\x00\x00\x00", 7, TO, &displaced, reason));
	memcpy(&disp, displaced.code + 2, 4);
	assert_int_equal(TO + 7 + (int64_t)disp, FROM + 7 + 0x100);
	assert_false(displace("\x48\x8b\x05\x00\x01\x00\x00", 7, 0x10000, &displaced, reason));
	assert_non_null(strstr(reason, "out of reach"));
}

static void test_branches(void **state)
{
	struct fay_displaced displaced;
	char reason[FAY_REASON_MAX];
	int32_t rel;
	uint64_t pushed;

	/* call +0x100: the original return address is pushed */
	assert_true(displace("\xe8\x00\x01\x00\x00", 5, TO, &displaced, reason));
	assert_int_equal(displaced.code[0], 0x68);
	memcpy(&rel, displaced.code + 1, 4);
	assert_memory_equal(displaced.code + 5, "\xc7\x44\x24\x04", 4);
	pushed = (uint32_t)rel;
	memcpy(&rel, displaced.code + 9, 4);
	pushed |= (uint64_t)(uint32_t)rel << 32;
	assert_int_equal(pushed, FROM + 5);
	assert_int_equal(displaced.code[13], 0xe9);
	memcpy(&rel, displaced.code + 14, 4);
	assert_int_equal(TO + 18 + (int64_t)rel, FROM + 5 + 0x100);
	/* test edi, edi; je +0x20 (short); nop */
	assert_true(displace("\x85\xff\x74\x20\x90", 5, TO, &displaced, reason));
	assert_memory_equal(displaced.code, "\x85\xff\x0f\x84", 4);
	memcpy(&rel, displaced.code + 4, 4);
	assert_int_equal(TO + 8 + (int64_t)rel, FROM + 4 + 0x20);
	/* call *0x10(%rax); nop; nop becomes push; jmp *0x10(%rax) only if the call is last */
	assert_true(displace("\x90\x90\xff\x50\x10", 5, TO, &displaced, reason));
	assert_memory_equal(displaced.code + 15, "\xff\x60\x10", 3);
}

static void test_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
		const char *reason;
	} cases[] = {
		{ "\xff\xd0\x90\x90\x90", 5, "call within" },
		{ "\xcc\x90\x90\x90\x90", 5, "breakpoint" },
		{ "\xe2\x10\x90\x90\x90", 5, "cannot be moved" },     /* loop */
		{ "\xe3\x10\x90\x90\x90", 5, "cannot be moved" },     /* jrcxz */
		{ "\xeb\x01\x90\x90\x90", 5, "jump into its first" }, /* jmp +1 */
		{ "\x90\x90\xff\x54\x24\x08", 6, "stack pointer" },   /* call *8(%rsp) */
		{ "\x06\x90\x90\x90\x90", 5, "not an instruction" },
	};
	struct fay_displaced displaced;
	char reason[FAY_REASON_MAX];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_false(displace(cases[i].bytes, cases[i].size, TO, &displaced, reason));
		if (!strstr(reason, cases[i].reason))
			fail_msg("case %zu: %s", i, reason);
	}
	/* push $34; pop rax; syscall: a thread in pause() is at +5, its restart at +3. */
	assert_false(displace("\x6a\x22\x58\x0f\x05", 5, TO, &displaced, reason));
	assert_non_null(strstr(reason, "system call"));
	/* xor eax, eax; syscall; ret: the thread is at +4 and is moved with it. */
	assert_true(displace("\x31\xc0\x0f\x05\xc3", 5, TO, &displaced, reason));
}

/* A function of `size` bytes at `address`, and the bytes behind it. */
struct function {
	const uint8_t *bytes;
	uint64_t address;
	size_t size, tail;
};

static size_t read_function(void *context, uint64_t address, void *to, size_t size)
{
	const struct function *function = context;
	uint64_t at = address - function->address, all = function->size + function->tail;

	if (at >= all)
		return 0;
	if (size > all - at)
		size = all - at;
	memcpy(to, function->bytes + at, size);
	return size;
}

static bool judge_as(enum fay_place_kind kind, const void *bytes, size_t size, size_t tail,
		     uint64_t address, struct fay_place *place, char reason[FAY_REASON_MAX])
{
	struct function function = { bytes, address, size, tail };
	struct fay_flow_program program = { .context = &function, .read = read_function };

	return fay_place_judge(&program, address, address + size, address, kind, place, reason);
}

static bool judge(const void *bytes, size_t size, size_t tail, uint64_t address,
		  struct fay_place *place, char reason[FAY_REASON_MAX])
{
	return judge_as(FAY_PLACE_AT_ENTRY, bytes, size, tail, address, place, reason);
}

static void test_patchable(void **state)
{
	char reason[FAY_REASON_MAX];
	struct fay_place place;

	assert_true(judge("\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\x5d\xc3", 10, 0, FROM, &place, reason));
	assert_int_equal(place.site, FROM + 4);
	assert_true(judge("\x31\xc0\xc3\xcc\xcc\xcc", 3, 3, FROM, &place, reason));
	assert_int_equal(place.site, FROM);
	assert_false(judge("\x31\xc0\xc3\x55\x48\x89", 3, 3, FROM, &place, reason));
	assert_non_null(strstr(reason, "is 3 bytes long"));
	/* the same padding, but it would begin the next aligned function */
	assert_false(judge("\x31\xc0\xc3\xcc\xcc\xcc", 3, 3, FROM + 13, &place, reason));
	assert_false(judge("\x90\x90\x90\x90\x90\xeb\xfa", 7, 0, FROM, &place, reason));
	assert_non_null(strstr(reason, "jump into"));
	assert_false(judge("\x90\x90\x90\x90\x90\xeb\xf9", 7, 0, FROM, &place, reason));
	assert_non_null(strstr(reason, "loop back"));
}

/* What goes where nothing says may come back behind the place. */
static void test_goes_away(void **state)
{
	static const char *away[] = { "\xff\xe0\x90", "\xff\x2f\x90", "\xc6\xf8\x01",
				      "\xca\x08\x00" };
	char reason[FAY_REASON_MAX];
	struct fay_place place;
	uint8_t body[9] = "\x55\x48\x89\xe5\x5d\x90\x90\x90\xc3";

	assert_true(judge_as(FAY_PLACE_INSIDE_AT, body, 9, 0, FROM, &place, reason));
	for (size_t i = 0; i < sizeof(away) / sizeof(*away); i++) {
		memcpy(body + 5, away[i], 3);
		assert_false(judge_as(FAY_PLACE_INSIDE_AT, body, 9, 0, FROM, &place, reason));
		assert_non_null(strstr(reason, "has an indirect jump"));
		assert_true(judge(body, 9, 0, FROM, &place, reason));
		/* at the first instruction as at an entry, */
		assert_true(judge_as(FAY_PLACE_AT_FIRST, body, 9, 0, FROM, &place, reason));
		assert_int_equal(place.site, FROM);
	}
	/* but not over endbr64, behind which a loop may begin, */
	assert_false(judge_as(FAY_PLACE_AT_FIRST, "\xf3\x0f\x1e\xfa\x55\x5d\xff\xe0\xc3", 9, 0,
			      FROM, &place, reason));
	assert_non_null(strstr(reason, "has an indirect jump"));
	/* nor where another jump is known to lead into it. */
	assert_false(judge_as(FAY_PLACE_AT_FIRST, "\x55\x5d\x90\x90\x90\x74\xfa\xff\xe0", 9, 0,
			      FROM, &place, reason));
	assert_non_null(strstr(reason, "has a jump (from"));
	/* What is asked for there is asked of calls: a jump back to it is none. */
	assert_false(judge_as(FAY_PLACE_AT_FIRST, "\x55\x5d\x90\x90\x90\x74\xf9\xc3", 8, 0, FROM,
			      &place, reason));
	assert_non_null(strstr(reason, "has a loop back to its first instruction (from +5)"));
	assert_true(judge_as(FAY_PLACE_INSIDE_AT, "\x55\x5d\x90\x90\x90\x74\xf9\xc3", 8, 0, FROM,
			     &place, reason));
	/* Other code begins behind them. */
	assert_false(judge_as(FAY_PLACE_INSIDE_AT, "\xff\x2f\x55\x5d\x90\x90\xc3", 7, 0, FROM,
			      &place, reason));
	assert_non_null(strstr(reason, "where other code begins"));
}

/* Jumps back to the first instruction: where five bytes lead each of them elsewhere. */
static void test_jumps_back(void **state)
{
	static const struct {
		const char *end; /* of a function of 32 bytes of nop before it */
		size_t size, tail;
		int at; /* expected, from the end's start; -1: refused */
	} cases[] = {
		{ "\xe9\xdb\xff\xff\xff", 5, 0, 0 }, /* jmp rel32 */
		/* je rel32; ret: its second byte stays */
		{ "\x0f\x84\xda\xff\xff\xff\xc3", 7, 0, 1 },
		/* jmp rel8 with padding behind it */
		{ "\xeb\xde\xcc\xcc\xcc", 2, 3, 0 },
		{ "\xeb\xde\xcc\xcc\x55", 2, 3, -1 }, /* two bytes of it */
		{ "\xeb\xde\xc3\xcc\xcc", 3, 2, -1 }, /* code behind it */
		{ "\x74\xde\xc3", 3, 0, -1 },         /* je rel8 */
		{ "\xe2\xde\xc3", 3, 0, -1 },         /* loop */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t body[64];
		char reason[FAY_REASON_MAX];
		struct fay_place place;
		bool can;

		memset(body, 0x90, sizeof(body));
		memcpy(body + 32, cases[i].end, cases[i].size + cases[i].tail);
		can = judge(body, 32 + cases[i].size, cases[i].tail, FROM, &place, reason);
		assert_int_equal(can, cases[i].at >= 0);
		if (can) {
			assert_int_equal(place.redirect_count, 1);
			assert_int_equal(place.redirects[0], FROM + 32 + cases[i].at);
		} else {
			assert_non_null(strstr(reason, "loop back"));
		}
	}
}

/* Where one byte may become int3: at a function's start, which nothing in it leads back to, and at
 * a marker's nop, which begins where an instruction does. */
static void test_traps(void **state)
{
	static const struct {
		const char *bytes;
		size_t size, at;
		enum fay_place_kind kind;
		const char *refused; /* NULL: it may */
		unsigned length;
	} cases[] = {
		{ "\x90\xc3", 2, 0, FAY_PLACE_AT_ENTRY, NULL, 1 },
		{ "\x31\xc0\xff\xc0\x75\xfc\xc3", 7, 0, FAY_PLACE_AT_ENTRY, NULL,
		  2 }, /* to behind the first */
		{ "\x31\xc0\xff\xc0\x75\xfa\xc3", 7, 0, FAY_PLACE_AT_ENTRY, "loop back", 0 },
		{ "\xe8\xfb\xff\xff\xff\xc3", 6, 0, FAY_PLACE_AT_ENTRY, NULL,
		  5 }, /* calls itself */
		{ "\xf3\x0f\x1e\xfa\x75\xfe\xc3", 7, 0, FAY_PLACE_AT_ENTRY, NULL,
		  4 }, /* behind endbr64 */
		{ "\xf3\x0f\x1e\xfa\x75\xfa\xc3", 7, 0, FAY_PLACE_AT_ENTRY, "loop back", 0 },
		{ "\xe2\xfe\xc3", 3, 0, FAY_PLACE_AT_ENTRY, "loop back", 0 }, /* loop */
		{ "\xcc\xc3", 2, 0, FAY_PLACE_AT_ENTRY, "begins with int3", 0 },
		{ "\x06\xc3", 2, 0, FAY_PLACE_AT_ENTRY, "not an instruction", 0 },
		{ "\x31\xc0\x90\xc3", 4, 2, FAY_PLACE_AT_MARKER, NULL, 1 },
		{ "\x90\x75\xfd\xc3", 4, 0, FAY_PLACE_AT_MARKER, NULL,
		  1 }, /* each round reaches it */
		{ "\xb0\x90\xc3", 3, 1, FAY_PLACE_AT_MARKER, "no instruction",
		  0 }, /* in mov $0x90, %al */
		{ "\x31\xc0\xc3", 3, 0, FAY_PLACE_AT_MARKER, "no nop", 0 },
		{ "\x66\x90\xc3", 3, 0, FAY_PLACE_AT_MARKER, "no nop", 0 },
		{ "\x90\xc3", 2, 2, FAY_PLACE_AT_MARKER, "no instruction", 0 },
		/* inside, each round is an event */
		{ "\x31\xc0\xff\xc0\x75\xfc\xc3", 7, 2, FAY_PLACE_INSIDE_AT, NULL, 2 },
		{ "\x31\xc0\xff\xc0\x75\xfc\xc3", 7, 3, FAY_PLACE_INSIDE_AT, "no instruction", 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct function function = { (const uint8_t *)cases[i].bytes, FROM, cases[i].size,
					     0 };
		struct fay_flow_program program = { .context = &function, .read = read_function };
		char reason[FAY_REASON_MAX] = "";
		unsigned length = 0;
		bool may = fay_place_traps(&program, FROM, FROM + cases[i].size, FROM + cases[i].at,
					   cases[i].kind, &length, reason);

		assert_int_equal(may, !cases[i].refused);
		assert_int_equal(length, cases[i].length);
		if (!may)
			assert_non_null(strstr(reason, cases[i].refused));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copied),     cmocka_unit_test(test_rip_relative),
		cmocka_unit_test(test_branches),   cmocka_unit_test(test_refused),
		cmocka_unit_test(test_patchable),  cmocka_unit_test(test_goes_away),
		cmocka_unit_test(test_jumps_back), cmocka_unit_test(test_traps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
