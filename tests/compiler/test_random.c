/* SPDX-License-Identifier: MIT */
/*
 * Random probes with hostile indices, shifts, divisions and loops, from fixed seeds: each must
 * compile, be accepted by the verifier, and when run with random and extreme events neither fault
 * (regions end at pages that cannot be touched) nor change the state objects that lie before and
 * after the one it writes. FAY_RANDOM_SEED and FAY_RANDOM_COUNT choose others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "tests/xorshift.h"

static uint64_t seed;
static char source[65536];
static size_t used;

static unsigned pick(unsigned n)
{
	return (unsigned)((xorshift(&seed) * 0x2545f4914f6cdd1du >> 33) % n);
}

static void __attribute__((format(printf, 1, 2))) say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	used += (size_t)vsnprintf(source + used, sizeof(source) - used, format, args);
	va_end(args);
	assert_true(used < sizeof(source));
}

static void expression(unsigned depth)
{
	static const char *const operators[] = { "+", "-", "*", "&", "|", "^", "<", "==", ">" };
	static const char *const arrays[] = { "buf", "table", "mid.bucket" };
	static const char *const constants[] = { "0",    "1",           "7",
						 "16",   "64",          "255",
						 "4096", "0xffffffffu", "0x8000000000000000u",
						 "~0ul" };

	if (!depth) {
		if (pick(3))
			say("u%u", pick(4));
		else
			say("%s", constants[pick(sizeof(constants) / sizeof(*constants))]);
		return;
	}
	switch (pick(9)) {
	case 0:
		say("(");
		expression(depth - 1);
		say(pick(2) ? " >> (" : " << (");
		expression(depth - 1);
		say(" & 63))");
		return;
	case 1:
		say("(");
		expression(depth - 1);
		say(pick(2) ? " / " : " %% ");
		expression(depth - 1);
		say(")");
		return;
	case 2:
		say("(uint64_t)((int64_t)");
		expression(depth - 1);
		say(pick(2) ? " / (int64_t)" : " %% (int64_t)");
		expression(depth - 1);
		say(")");
		return;
	case 3:
	case 4:
		say("%s[", arrays[pick(3)]);
		expression(depth - 1);
		say("]");
		return;
	case 5:
		say(pick(2) ? "(uint8_t)(" : "(uint64_t)(int32_t)(");
		expression(depth - 1);
		say(")");
		return;
	case 6:
		say("(");
		expression(depth - 1);
		say(" ? (uint64_t)");
		expression(depth - 1);
		say(" : ");
		expression(depth - 1);
		say(")");
		return;
	default:
		say("((uint64_t)");
		expression(depth - 1);
		say(" %s ", operators[pick(9)]);
		expression(depth - 1);
		say(")");
	}
}

static void statements(unsigned depth, unsigned count);

static void statement(unsigned depth)
{
	static unsigned loop;

	switch (depth ? pick(8) : pick(4)) {
	case 0:
	case 1:
		say("u%u = ", pick(4));
		expression(2);
		say(";\n");
		return;
	case 2:
	case 3:
		say("%s[", pick(2) ? "buf" : "mid.bucket");
		expression(2);
		say("] %s= ", pick(2) ? "+" : "");
		expression(1);
		say(";\n");
		return;
	case 4:
		loop++;
		say("for (unsigned i%u = 0; i%u < %u; i%u++) {\nu%u += i%u;\n", loop, loop,
		    1 + pick(40), loop, pick(4), loop);
		statements(depth - 1, 2);
		say("}\n");
		return;
	case 5:
		say("while (");
		expression(1);
		say(") {\nu%u >>= 1;\n", pick(4));
		statements(depth - 1, 1);
		say("}\n");
		return;
	default:
		say("if (");
		expression(2);
		say(") {\n");
		statements(depth - 1, 2);
		say("} else {\n");
		statements(depth - 1, 1);
		say("}\n");
	}
}

static void statements(unsigned depth, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		statement(depth);
}

static void make_source(void)
{
	used = 0;
	say("#include <fay/probe.h>\n"
	    "FAY_HISTOGRAM(before);\nFAY_HISTOGRAM(mid);\nFAY_HISTOGRAM(after);\n"
	    "static const uint32_t table[11] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5};\n"
	    "FAY_ENTRY(\"a!b\")\n{\n"
	    "uint64_t u0 = event->arg[0], u1 = event->arg[1], u2 = event->arg[2], u3 = event->tid, "
	    "buf[16] = {0};\n");
	statements(2, 5);
	say("mid.bucket[0] += u0 ^ u1 ^ u2 ^ u3 ^ buf[u0 %% 16];\n}\n");
}

static void run(struct loaded *l)
{
	static const uint64_t extremes[] = {
		0, 1, 15, 16, 63, 64, UINT32_MAX, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX
	};
	uint8_t *before = image_state(l, "before"), *after = image_state(l, "after");

	memset(before, 0x5a, 65 * 8);
	memset(after, 0xa5, 65 * 8);
	for (int round = 0; round < 60; round++) {
		for (unsigned i = 0; i < 3; i++)
			l->event->arg[i] =
				pick(2) ? extremes[pick(10)] : (uint64_t)pick(1u << 31) << pick(33);
		l->event->tid = pick(1u << 31);
		image_call(l, 0);
	}
	for (unsigned i = 0; i < 65 * 8; i++) {
		assert_int_equal(before[i], 0x5a);
		assert_int_equal(after[i], 0xa5);
	}
}

static void test_random(void **unused)
{
	unsigned count =
		getenv("FAY_RANDOM_COUNT") ? (unsigned)atoi(getenv("FAY_RANDOM_COUNT")) : 40;
	uint64_t first =
		getenv("FAY_RANDOM_SEED") ? strtoull(getenv("FAY_RANDOM_SEED"), NULL, 0) : 1;

	unsigned refused = 0;

	for (unsigned n = 0; n < count; n++) {
		char path[] = "/tmp/fay-random-XXXXXX.c", name[64];
		struct fay_buffer image;
		struct fay_error error = { 0 };
		struct loaded l;
		int fd, result;

		seed = (first + n) * 0x9e3779b97f4a7c15u;
		make_source();
		fd = mkstemps(path, 2);
		assert_true(fd >= 0);
		dprintf(fd, "#pragma clang diagnostic ignored \"-Weverything\"\n%s", source);
		close(fd);
		fay_buffer_init(&image);
		result = fay_compile_source(path, NULL, &image, &error);
		unlink(path);
		snprintf(name, sizeof(name), "random %llu", (unsigned long long)(first + n));
		if (getenv("FAY_RANDOM_KEEP")) {
			FILE *out = fopen(getenv("FAY_RANDOM_KEEP"), "w");

			fputs(source, out);
			fclose(out);
			out = fopen("/tmp/fay-random.fay", "w");
			fwrite(image.data, 1, image.size, out);
			fclose(out);
		}
		if (result == FAY_E_REFUSED && strstr(error.message, "access of")) {
			/* an index that is a constant beyond the end: the generator made one */
			refused++;
			continue;
		}
		if (result)
			fail_msg("%s: %s\n%s", name, error.message, source);
		image_verify(name, &image);
		image_load(&image, &l);
		run(&l);
		image_unload(&l);
		fay_buffer_deinit(&image);
	}
	assert_true(refused <= count / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_random) };

	return cmocka_run_group_tests_name("compiler random probes", tests, NULL, NULL);
}
