/* SPDX-License-Identifier: MIT */
/* What conditions tell. */
#include "rule.h"

#include "verifier/checker/machine/flags.c"

/* Whether the condition holds after a - b; `inverted`: after a + -b, of the carry. */
static bool holds(unsigned cc, uint64_t a, uint64_t b, unsigned bits, bool inverted)
{
	uint64_t d = low(a - b, bits), sum = low(a + low(-b, bits), bits);
	bool carry = inverted ? sum < a : a < b, zero = !d;
	bool sign = signed_low(d, bits) < 0, less = signed_low(a, bits) < signed_low(b, bits);

	switch (cc) {
	case CC_B: return carry;
	case CC_AE: return !carry;
	case CC_E: return zero;
	case CC_NE: return !zero;
	case CC_BE: return carry || zero;
	case CC_A: return !carry && !zero;
	case CC_S: return sign;
	case CC_NS: return !sign;
	case CC_L: return less;
	case CC_GE: return !less;
	case CC_LE: return less || zero;
	case CC_G: return !less && !zero;
	default: return true;
	}
}

static unsigned choose_condition(void)
{
	static const uint8_t cases[] = { CC_B, CC_AE, CC_E, CC_NE, CC_BE, CC_A,
					 CC_S, CC_NS, CC_L, CC_GE, CC_LE, CC_G };

	return cases[choose("condition", sizeof(cases))];
}

/* No number is lost where the condition holds of it. */
static void prove_condition(unsigned cc, unsigned bits)
{
	uint64_t a = low(number_of(&m.s.flags.a), bits), b = low(number_of(&m.s.flags.b), bits);

	m.s.flags.bits = (uint8_t)bits;
	m.s.flags.covered = FLAG_ALL;
	m.s.flags.inverted = choose("inverted", 2);
	assume(!m.s.flags.inverted || b);
	assume(holds(cc, a, b, bits, m.s.flags.inverted));
	prove(flags_assume(&m, cc), "that the condition can hold");
	admit_readings();
	prove(admits(), "that nothing is lost");
	prove(low(number_of(&m.s.flags.a), bits) == a && low(number_of(&m.s.flags.b), bits) == b,
	      "that the operands are what they were");
}

RUN_RULE(flags_assume)
{
	unsigned cc = choose_condition(), bits = choose_width();
	bool same = choose("same", 2);

	any_state(same ? 1 : 2);
	if (!same && choose("fact", 2))
		any_fact(6);
	m.s.flags.a = any_value(2);
	m.s.flags.b = any_value(same ? choose("constant", 2) ? 0 : 2 : 4);
	prove_condition(cc, bits);
}

/* A variable of small range, far from zero. */
static struct value far_value(uint32_t id)
{
	uint64_t c = any64("c") % 64;
	struct value v = { .kind = KIND_NUMBER, .bits = 64 };

	v.f.c = choose("negative", 2) ? INT64_MIN + (int64_t)c : INT64_MAX - (int64_t)c;
	v.f.k[0] = choose("minus", 2) ? -1 : 1;
	v.f.v[0] = id;
	m.s.var[id - 1].negative = 0;
	m.s.var[id - 1].lo = any64("lo") % 16;
	m.s.var[id - 1].hi = m.s.var[id - 1].lo + any64("size") % 16;
	ghost[id] = m.s.var[id - 1].lo + any64("x") % 16;
	return v;
}

/* Differences that wrap. */
RUN_RULE(flags_assume_far)
{
	unsigned cc = choose_condition();

	any_state(2);
	m.s.flags.a = far_value(1);
	m.s.flags.b = far_value(2);
	if (choose("near", 2))
		m.s.flags.b.f.c = (int64_t)any64("c") % 64;
	assume(admits());
	prove_condition(cc, 64);
}

/* What a condition is as a number. */
RUN_RULE(flags_truth)
{
	unsigned cc = choose_condition(), bits = choose_width();
	struct value v;
	uint64_t a, b;

	any_state(2);
	m.s.flags.a = any_value(2);
	m.s.flags.b = any_value(4);
	m.s.flags.bits = (uint8_t)bits;
	m.s.flags.covered = FLAG_ALL;
	m.s.flags.inverted = choose("inverted", 2);
	a = low(number_of(&m.s.flags.a), bits);
	b = low(number_of(&m.s.flags.b), bits);
	assume(!m.s.flags.inverted || b);
	v = flags_truth(&m, cc);
	ghost[3] = holds(cc, a, b, bits, m.s.flags.inverted);
	prove(number_of(&v) == (uint64_t)ghost[3], "the truth");
	prove(admits(), "that nothing is lost");
}
