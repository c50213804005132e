/* SPDX-License-Identifier: MIT */
/* For test_functions.c: as a probe, and included there (KEPT_NATIVE) as what the probe must agree
 * with. */
#ifndef KEPT_NATIVE
#include <fay/probe.h>
#endif

struct state {
	uint64_t result[64], table[256], calls;
};
#ifdef KEPT_NATIVE
static struct state s;
#else
FAY_SCRATCH(struct state, s);
#endif

#define ROUND(i)                                                                                   \
	a += b ^ (c << (i));                                                                       \
	b = (b << 7 | b >> 57) + s.table[(uint8_t)(a >> 3)];                                       \
	c ^= a * UINT64_C(0x9e3779b97f4a7c15) + (i);                                               \
	s.table[(c + (i)) & 255] += a;                                                             \
	if (a & UINT64_C(1) << (i))                                                                \
		c += b / ((i) + 3);

static uint64_t scramble(uint64_t x, unsigned key)
{
	uint64_t a = x, b = key, c = 7;

	/* clang-format off */
	ROUND(1) ROUND(2) ROUND(3) ROUND(4) ROUND(5) ROUND(6) ROUND(7) ROUND(8) ROUND(9) ROUND(10)
	ROUND(11) ROUND(12);
	/* clang-format on */
	s.calls++;
	return a ^ b ^ c;
}

static void spread(uint32_t from, int8_t step, uint16_t rounds)
{
	uint64_t a = from, b = (uint64_t)step, c = rounds;

	/* clang-format off */
	ROUND(3) ROUND(5) ROUND(7) ROUND(9) ROUND(11) ROUND(13) ROUND(2) ROUND(4) ROUND(6) ROUND(8)
	ROUND(10) ROUND(12);
	/* clang-format on */
	for (unsigned i = 0; i < rounds && i < 50; i++)
		s.result[(from + i * (unsigned)step) & 63] += scramble(i, rounds);
}

static void at_entry(const uint64_t *arg)
{
	for (unsigned i = 0; i < 64; i++)
		s.result[i] += scramble(arg[0] + i, i);
	spread((uint32_t)arg[1], -3, (uint16_t)arg[2]);
	spread((uint32_t)arg[2], 5, 7);
	s.result[scramble(arg[2], 9) & 63] ^= scramble(4, 1);
}

static void at_return(uint64_t value)
{
	s.result[value & 63] = scramble(value, 4);
	spread((uint32_t)value, 1, 3);
}

#ifndef KEPT_NATIVE
FAY_ENTRY("a!b")
{
	at_entry(event->arg);
}

FAY_RETURN("a!b")
{
	at_return(event->retval);
}
#endif
