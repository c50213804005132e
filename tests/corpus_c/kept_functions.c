/* SPDX-License-Identifier: MIT */
// Large functions of numbers, called from several places, from loops and from each other; they change state and return narrow numbers.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t table[256], result[16], calls;
	int64_t balance;
};

#define ROUND(i)                                                   \
	do {                                                       \
		a += b ^ (c << (i));                               \
		b = (b << 7 | b >> 57) + (a >> (i));               \
		c ^= a * UINT64_C(0x9e3779b97f4a7c15) + (i);       \
		if (a & UINT64_C(1) << (i))                        \
			c += b / ((i) + 3);                        \
		b ^= c >> 11;                                      \
	} while (0)

static uint64_t scramble(uint64_t x, uint32_t key)
{
	uint64_t a = x, b = key, c = 7;

	ROUND(1);
	ROUND(2);
	ROUND(3);
	ROUND(4);
	ROUND(5);
	ROUND(6);
	ROUND(7);
	ROUND(8);
	ROUND(9);
	ROUND(10);
	ROUND(11);
	ROUND(12);
	for (unsigned i = 0; i < 20 && (a & 3); i++)
		a = (a >> 1) + c;
	return a ^ b ^ c;
}

static int8_t weigh(int8_t sign, uint16_t by)
{
	uint64_t a = by, b = scramble(by, 3), c = (uint64_t)sign;

	ROUND(1);
	ROUND(3);
	ROUND(5);
	ROUND(7);
	ROUND(2);
	ROUND(4);
	ROUND(6);
	ROUND(8);
	ROUND(10);
	ROUND(12);
	ROUND(9);
	ROUND(11);
	return (int8_t)(a + b + c);
}

static uint64_t twice(uint64_t x)
{
	return scramble(x, 1) + scramble(x + 1, 2);
}

PROBE("libc!write")
{
	for (unsigned i = 0; i < 16; i++)
		state->result[i] += scramble(event->arg[0] + i, i);
	state->table[event->arg[1] & 255] += twice(event->arg[1]) + twice(event->arg[2]);
	state->balance += weigh((int8_t)event->arg[0], (uint16_t)event->arg[2]);
	state->balance -= weigh(-3, (uint16_t)event->arg[1]);
	if (scramble(state->table[3], 9) & 1)
		state->result[1] = twice(3) + (uint64_t)weigh(1, 2);
	else
		state->calls += scramble(4, 1) & 15;
}
