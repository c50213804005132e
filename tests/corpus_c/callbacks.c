/* SPDX-License-Identifier: MIT */
// Functions handed to functions: one sort for two orders, a fold, and narrow arguments with sign.
// needs: guard (a pointer to a function is passed)
#include "corpus.h"

STATE {
	uint64_t value[24];
	uint64_t total, largest, calls;
	int8_t narrow;
};

static bool smaller(uint64_t a, uint64_t b)
{
	return a < b;
}

static bool larger_low_half(uint64_t a, uint64_t b)
{
	return (uint32_t)a > (uint32_t)b;
}

static void sort(uint64_t *value, unsigned count, bool (*before)(uint64_t, uint64_t))
{
	for (unsigned i = 1; i < count; i++)
		for (unsigned k = i; k > 0 && before(value[k], value[k - 1]); k--) {
			uint64_t other = value[k];

			value[k] = value[k - 1];
			value[k - 1] = other;
		}
}

static uint64_t fold(const uint64_t *value, unsigned count, uint64_t start, uint64_t (*with)(uint64_t, uint64_t))
{
	for (unsigned i = 0; i < count; i++)
		start = with(start, value[i]);
	return start;
}

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a + b;
}

static uint64_t maximum(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static int8_t doubled(int8_t x)
{
	return (int8_t)(x * 2);
}

static int8_t lowered(int8_t x)
{
	return (int8_t)(x - 100);
}

PROBE("libc!write")
{
	int8_t (*step)(int8_t) = event->arg[2] & 1 ? doubled : lowered;

	state->value[state->calls++ % 24] = event->arg[1];
	sort(state->value, 24, event->arg[0] & 1 ? smaller : larger_low_half);
	state->total = fold(state->value, 24, 0, sum);
	state->largest = fold(state->value, 24, 0, maximum);
	state->narrow = step((int8_t)(state->narrow + (int8_t)event->arg[1]));
}
