/* SPDX-License-Identifier: MIT */
/*
 * The abstract numbers against the concrete ones: every operation on random sets, with random
 * members, must contain the concrete result; every assumption must keep the members that satisfy
 * it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "tests/xorshift.h"
#include "verifier/prover/domain/domain.h"

#define ROUNDS 300000

static uint64_t seed = 0x243f6a8885a308d3u;

static uint64_t rnd(void)
{
	return xorshift(&seed);
}

static uint64_t number(void)
{
	static const uint64_t edge[] = { 0,
					 1,
					 2,
					 7,
					 8,
					 15,
					 63,
					 64,
					 255,
					 INT32_MAX,
					 (uint64_t)INT32_MAX + 1,
					 UINT32_MAX,
					 INT64_MAX,
					 (uint64_t)INT64_MIN,
					 UINT64_MAX };
	uint64_t x = rnd();

	switch (x % 4) {
	case 0: return edge[(x >> 8) % (sizeof(edge) / sizeof(edge[0]))];
	case 1: return rnd() >> (x >> 8) % 64;
	case 2: return -(rnd() >> (x >> 8) % 64);
	default: return (x >> 8) % 64;
	}
}

/* A set that holds `member`, made the ways that the analysis makes them. */
static struct fay_scalar set_with(uint64_t member)
{
	struct fay_scalar s = fay_scalar_const(member), t;
	unsigned more = rnd() % 4;

	if (rnd() % 8 == 0)
		return fay_scalar_top();
	if (rnd() % 4 == 0) { /* an arithmetic progression */
		uint64_t step = 1 + rnd() % 40;

		for (unsigned i = 0; i < more; i++) {
			t = fay_scalar_const(member + step * (rnd() % 16));
			s = fay_scalar_join(&s, &t);
		}
		return s;
	}
	for (unsigned i = 0; i < more; i++) {
		t = fay_scalar_const(number());
		s = fay_scalar_join(&s, &t);
	}
	return s;
}

static void expect(const char *what, const struct fay_scalar *s, uint64_t value, uint64_t a,
		   uint64_t b)
{
	char text[96];

	if (!fay_scalar_contains(s, value))
		fail_msg("%s of 0x%llx and 0x%llx is 0x%llx, not within %s", what,
			 (unsigned long long)a, (unsigned long long)b, (unsigned long long)value,
			 fay_scalar_print(s, text, sizeof(text)));
}

static void operations_contain_results(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t a = number(), b = number(), c = rnd() % 64;
		struct fay_scalar sa = set_with(a), sb = set_with(b), sc = fay_scalar_const(c), r;
		static const unsigned widths[] = { 8, 16, 32, 64 };
		unsigned width = widths[rnd() % 4];
		uint64_t mask = width == 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1;

		expect("membership", &sa, a, a, b);
		r = fay_scalar_add(&sa, &sb);
		expect("add", &r, a + b, a, b);
		r = fay_scalar_sub(&sa, &sb);
		expect("sub", &r, a - b, a, b);
		r = fay_scalar_and(&sa, &sb);
		expect("and", &r, a & b, a, b);
		r = fay_scalar_or(&sa, &sb);
		expect("or", &r, a | b, a, b);
		r = fay_scalar_xor(&sa, &sb);
		expect("xor", &r, a ^ b, a, b);
		r = fay_scalar_mul(&sa, &sb);
		expect("mul", &r, a * b, a, b);
		r = fay_scalar_mul_high(&sa, &sb);
		expect("mul high", &r, (uint64_t)((unsigned __int128)a * b >> 64), a, b);
		if (rnd() % 2) {
			struct fay_scalar other = fay_scalar_const(rnd() % 64);

			sc = fay_scalar_join(&sc, &other);
		}
		r = fay_scalar_shl(&sa, &sc);
		expect("shl", &r, a << c, a, c);
		r = fay_scalar_shr(&sa, &sc);
		expect("shr", &r, a >> c, a, c);
		r = fay_scalar_sar(&sa, &sc);
		expect("sar", &r, (uint64_t)((int64_t)a >> c), a, c);
		if (sb.umin) {
			r = fay_scalar_udiv(&sa, &sb);
			expect("div", &r, a / b, a, b);
			r = fay_scalar_urem(&sa, &sb);
			expect("rem", &r, a % b, a, b);
		}
		r = fay_scalar_zext(&sa, width);
		expect("zext", &r, a & mask, a, width);
		r = fay_scalar_sext(&sa, width);
		expect("sext", &r,
		       width == 64 ? a : (uint64_t)((int64_t)(a << (64 - width)) >> (64 - width)),
		       a, width);
		r = fay_scalar_join(&sa, &sb);
		expect("join", &r, a, a, b);
		expect("join", &r, b, a, b);
		assert_true(fay_scalar_includes(&r, &sa) && fay_scalar_includes(&r, &sb));
	}
}

static void meet_and_assumptions_keep_members(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t a = number(), b = rnd() % 3 ? number() : a;
		struct fay_scalar x = set_with(a), y = set_with(b), s = set_with(a);

		assert_true(fay_scalar_meet(&s, &x));
		expect("meet", &s, a, a, b);
#define CHECK(name, holds)                                                                         \
	do {                                                                                       \
		struct fay_scalar p = x, q = y;                                                    \
		if (holds) {                                                                       \
			assert_true(fay_scalar_assume_##name(&p, &q));                             \
			expect(#name, &p, a, a, b);                                                \
			expect(#name, &q, b, a, b);                                                \
		}                                                                                  \
	} while (0)
		CHECK(ult, a < b);
		CHECK(ule, a <= b);
		CHECK(slt, (int64_t)a < (int64_t)b);
		CHECK(sle, (int64_t)a <= (int64_t)b);
		CHECK(eq, a == b);
		CHECK(ne, a != b);
	}
}

static void widening_covers_and_ends(void **state)
{
	static const struct fay_thresholds t = { 6, { -8, -1, 0, 7, 64, 1000 } };

	(void)state;
	for (unsigned i = 0; i < ROUNDS / 100; i++) {
		struct fay_scalar s = fay_scalar_const(number());
		unsigned changes = 0;

		for (unsigned k = 0; k < 300; k++) {
			struct fay_scalar one = fay_scalar_const(number()),
					  joined = fay_scalar_join(&s, &one), wide;

			if (fay_scalar_includes(&s, &joined))
				continue;
			wide = fay_scalar_widen(&s, &joined, &t);
			assert_true(fay_scalar_includes(&wide, &joined));
			s = wide;
			changes++;
		}
		assert_true(changes < 60);
	}
}

static void facts_that_proofs_need(void **state)
{
	struct fay_scalar s = fay_scalar_const(0), eight = fay_scalar_const(24),
			  end = fay_scalar_const(240), t;

	(void)state;
	/* for (i = 0; i != 240; i += 24) */
	for (unsigned i = 0; i < 4; i++) {
		t = fay_scalar_add(&s, &eight);
		s = fay_scalar_join(&s, &t);
	}
	assert_int_equal(s.modulus, 24);
	t = fay_scalar_range(0, 239);
	s.umax = 239;
	s.smax = 239;
	s.unknown = UINT64_MAX;
	s.value = 0;
	assert_true(fay_scalar_normalise(&s));
	assert_int_equal(s.umax, 216);
	s = fay_scalar_add(&s, &eight);
	assert_int_equal(s.umax, 240);
	assert_true(fay_scalar_assume_ne(&s, &end));
	assert_int_equal(s.umax, 216);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations_contain_results),
		cmocka_unit_test(meet_and_assumptions_keep_members),
		cmocka_unit_test(widening_covers_and_ends),
		cmocka_unit_test(facts_that_proofs_need),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
