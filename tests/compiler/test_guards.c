/* SPDX-License-Identifier: MIT */
/*
 * Each way to do with fewer guards: the number of guards is what it should be, the image is
 * verified (under `speculation: confined`, too), indices that are right reach what they name, and
 * hostile ones change nothing outside the member. Between `before` and `after` lies what the probe
 * may write.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fay/verify.h"
#include "harness.h"

#define FILL 0x5a5a5a5a5a5a5a5aull

struct test_case {
	const char *name, *member, *body; /* arg[0] is the index, arg[1] the value */
	unsigned masks, clamps, checks, merged, hoisted, shortened, bounded, fuels;
	unsigned elements; /* arg[0] below this: element arg[0] of the member becomes arg[1] */
	bool element8;     /* elements have 8 bytes, and it can be checked */
};

static const struct test_case cases[] = {
	{ "mask", "uint64_t a[16]", "s.a[event->arg[0]] = event->arg[1];", .masks = 1,
	  .elements = 16, .element8 = true },
	{ "clamp", "uint64_t a[10]", "s.a[event->arg[0]] = event->arg[1];", .clamps = 1,
	  .elements = 10, .element8 = true },
	{ "32-bit signed index", "uint64_t a[16]", "s.a[(int)event->arg[0]] = event->arg[1];",
	  .masks = 1, .elements = 16, .element8 = true },
	{ "offset index", "uint64_t a[16]", "s.a[event->arg[0] + 3 - 3] = event->arg[1];",
	  .masks = 1, .elements = 16, .element8 = true },
	{ "fields of a row", "struct { uint64_t k, c, s; } a[64]",
	  "s.a[event->arg[0]].c += 1; s.a[event->arg[0]].s += event->arg[1]; s.a[event->arg[0]].k "
	  "= 1;",
	  .masks = 1, .merged = 4 },
	{ "neighbours through one pointer", "uint64_t a[64]",
	  "uint64_t *p = &s.a[event->arg[0]]; p[0] = event->arg[1]; p[1] = 1; p[2] = 2;",
	  .clamps = 1, .merged = 2, .elements = 62, .element8 = true },
	{ "multiples", "uint64_t a[64]",
	  "uint64_t *p = &s.a[event->arg[0] * 16]; for (int i = 0; i < 16; i++) p[i] = "
	  "event->arg[1];",
	  .masks = 1, .merged = 15 },
	{ "masked by the source", "uint64_t a[16]", "s.a[event->arg[0] & 15] = event->arg[1];",
	  .elements = 16, .element8 = true },
	{ "remainder", "uint64_t a[16]", "s.a[event->arg[0] % 16] = event->arg[1];", .elements = 16,
	  .element8 = true },
	{ "remainder by another number", "uint64_t a[24]",
	  "s.a[event->arg[0] % 24] = event->arg[1];", .clamps = 1, .elements = 24,
	  .element8 = true },
	{ "byte index", "uint64_t a[256]", "s.a[(uint8_t)event->arg[0]] = event->arg[1];",
	  .elements = 256, .element8 = true },
	{ "tested by the source", "uint64_t a[16]",
	  "if (event->arg[0] < 16) s.a[event->arg[0]] = event->arg[1];", .elements = 16,
	  .element8 = true },
	{ "tested on both sides", "uint64_t a[16]",
	  "uint64_t i = event->arg[0]; if (i < 3 || i > 12) return; s.a[i] = event->arg[1]; s.a[i "
	  "+ 3] = 1;",
	  .masks = 0 },
	{ "constant loop", "uint64_t a[100]",
	  "for (unsigned i = 0; i < 100; i++) s.a[i] += event->arg[1] ^ i;", .bounded = 1 },
	{ "variable bound", "uint64_t a[100]",
	  "uint64_t n = event->arg[0] < 100 ? event->arg[0] : 100; for (uint64_t i = 0; i < n; "
	  "i++) s.a[i] += event->arg[1];",
	  .bounded = 1 },
	{ "downwards", "uint64_t a[100]",
	  "uint64_t n = event->arg[0] % 64; for (uint64_t i = n; i; i--) s.a[i] += event->arg[1];",
	  .bounded = 1 },
	{ "bound from outside", "uint64_t a[100]",
	  "for (uint64_t i = 0; i < event->arg[0]; i++) s.a[i] += event->arg[1];", .shortened = 1,
	  .bounded = 1 },
	{ "index from outside the loop", "uint64_t a[16]; uint64_t b[100]",
	  "uint64_t i = event->arg[0]; for (unsigned k = 0; k < 100; k++) { s.b[k] += 1; if "
	  "(s.b[k] & 1) s.a[i] += s.b[k]; }",
	  .masks = 1, .merged = 1, .hoisted = 1, .bounded = 1 },
	{ "list", "struct { uint32_t next, value; } a[64]",
	  "uint32_t i = event->arg[0]; uint64_t sum = 0; while (i != 77) { sum += s.a[i].value; i "
	  "= s.a[i].next; } s.a[0].value = sum;",
	  .checks = 1, .merged = 1, .fuels = 1 },
	{ "list of another length", "struct { int32_t next, value; } a[50]",
	  "int32_t i = (int32_t)event->arg[0]; while (i != 77) { s.a[i].value++; i = s.a[i].next; "
	  "}",
	  .checks = 1, .merged = 2, .fuels = 1 },
	{ "parts of one index", "uint16_t order[64]; uint64_t a[1024]; uint64_t b[16]",
	  "for (unsigned k = 0; k < 64; k++) { unsigned i = s.order[k]; s.b[i >> 6]++; s.a[i] = "
	  "event->arg[1]; }",
	  .checks = 1, .merged = 2, .bounded = 1 },
	{ "index from a table of constants", "uint64_t a[16]",
	  "static const uint8_t order[8] = {3, 1, 4, 15, 9, 2, 6, 5}; for (unsigned k = 0; k < 8; "
	  "k++) s.a[order[(k + event->arg[0]) & 7]]++;",
	  .bounded = 0 },
	{ "matrix", "uint64_t a[8][8]",
	  "s.a[event->arg[0] / 8][event->arg[0] % 8] = event->arg[1];", .masks = 1, .elements = 64,
	  .element8 = true },
	{ "matrix as a row", "uint64_t a[8][8]", "s.a[0][event->arg[0]] = event->arg[1];",
	  .masks = 1, .elements = 64, .element8 = true },
	{ "array on the stack", "uint64_t a[16]",
	  "uint64_t t[16]; for (int i = 0; i < 16; i++) t[i] = s.a[i]; t[event->arg[0]] = "
	  "event->arg[1]; for (int i = 0; i < 16; i++) s.a[i] = t[i];",
	  .masks = 1, .elements = 16, .element8 = true },
};

static const uint64_t hostile[] = { 0,
				    1,
				    9,
				    10,
				    15,
				    16,
				    63,
				    64,
				    99,
				    100,
				    255,
				    256,
				    1000,
				    INT32_MAX,
				    UINT32_MAX,
				    UINT64_C(1) << 31,
				    UINT64_C(1) << 32,
				    UINT64_C(1) << 60,
				    UINT64_C(1) << 61,
				    INT64_MAX,
				    UINT64_C(1) << 63,
				    UINT64_MAX,
				    UINT64_MAX - 7,
				    UINT64_MAX / 8 };

static void compile(const struct test_case *c, bool confined, struct fay_buffer *image,
		    struct fay_compile_counts *counts)
{
	struct fay_compile_options options = { .size = sizeof(options),
					       .confined = confined,
					       .counts = counts };
	struct fay_error error = { 0 };
	char path[] = "/tmp/fay-guards-XXXXXX.c";
	int fd = mkstemps(path, 2);

	assert_true(fd >= 0);
	dprintf(fd,
		"#include <fay/probe.h>\nstruct state { uint64_t before[8]; %s; uint64_t after[8]; "
		"};\nFAY_SCRATCH(struct state, s);\n"
		"FAY_ENTRY(\"a!b\")\n{\n%s\n}\n",
		c->member, c->body);
	close(fd);
	memset(counts, 0, sizeof(*counts));
	fay_buffer_init(image);
	if (fay_compile_source(path, &options, image, &error))
		fail_msg("%s: %s", c->name, error.message);
	unlink(path);
}

static void verify(const struct test_case *c, bool confined, const struct fay_buffer *image)
{
	struct fay_policy policy;
	struct fay_verdict verdict;

	fay_policy_default(&policy);
	policy.speculation_confined = confined;
	fay_verify(image->data, image->size, &policy, &verdict);
	if (verdict.outcome != FAY_ACCEPTED)
		fay_verdict_print(stderr, c->name, &verdict);
	assert_int_equal(verdict.outcome, FAY_ACCEPTED);
	fay_verdict_deinit(&verdict);
}

/* Runs with every hostile index; the 8 words before and after the member stay as they were. */
static void run(const struct test_case *c, const struct fay_buffer *image)
{
	struct loaded l;
	uint64_t *words;
	size_t count;

	image_load(image, &l);
	words = (uint64_t *)l.local;
	count = l.header->local_size / 8;
	for (size_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
		size_t end = count;

		for (size_t k = 0; k < count; k++)
			words[k] = FILL;
		l.event->arg[0] = hostile[i];
		l.event->arg[1] = 4711 + i;
		image_call(&l, 0);
		/* the rest of the last cache line belongs to nobody */
		while (end && words[end - 1] == FILL)
			end--;
		for (size_t k = 0; k < 8; k++)
			assert_int_equal(words[k], FILL);
		if (end > count - 8)
			fail_msg("%s: index %llu: word %zu of %zu changed", c->name,
				 (unsigned long long)hostile[i], end - 1, count);
		if (c->element8 && hostile[i] < c->elements && words[8 + hostile[i]] != 4711 + i)
			fail_msg("%s: element %llu is not what was written", c->name,
				 (unsigned long long)hostile[i]);
	}
	image_unload(&l);
}

static unsigned wrong;

static void expect(const struct test_case *c, const char *what, unsigned want, unsigned have)
{
	wrong += want != have;
	if (want != have)
		print_error("%s: %u %s, not %u\n", c->name, have, what, want);
}

static void test_guards(void **unused)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct test_case *c = &cases[i];
		struct fay_compile_counts counts;
		struct fay_buffer image;

		compile(c, false, &image, &counts);
		verify(c, false, &image);
		run(c, &image);
		fay_buffer_deinit(&image);
		expect(c, "masks", c->masks, counts.masks);
		expect(c, "clamps", c->clamps, counts.clamps);
		expect(c, "checks", c->checks, counts.checks);
		expect(c, "merged", c->merged, counts.merged);
		expect(c, "hoisted", c->hoisted, counts.hoisted);
		expect(c, "shortened", c->shortened, counts.shortened);
		expect(c, "bounded", c->bounded, counts.bounded);
		expect(c, "fuels", c->fuels, counts.fuels);
		if (counts.accesses != counts.constant + counts.in_range + counts.merged +
					       counts.masks + counts.clamps + counts.checks)
			fail_msg("%s: %u accesses do not add up", c->name, counts.accesses);
		compile(c, true, &image, &counts);
		expect(c, "checks where speculation is confined", 0, counts.checks);
		verify(c, true, &image);
		run(c, &image);
		fay_buffer_deinit(&image);
	}
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_guards) };

	return cmocka_run_group_tests_name("compiler guards", tests, NULL, NULL);
}
