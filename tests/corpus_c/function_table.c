/* SPDX-License-Identifier: MIT */
// A machine with registers whose operations are functions in a table, found by number and by name; tables with holes; structs by value.
// needs: guard (addresses in read-only data)
#include "corpus.h"

STATE {
	uint64_t reg[8], steps, unknown;
	uint64_t low, high;
};

struct pair {
	uint64_t low, high;
};
struct block {
	uint64_t word[6];
};
typedef uint64_t operation(uint64_t, uint64_t);

static uint64_t add(uint64_t a, uint64_t b)
{
	return a + b;
}

static uint64_t subtract(uint64_t a, uint64_t b)
{
	return a - b;
}

static uint64_t multiply(uint64_t a, uint64_t b)
{
	return a * b;
}

static uint64_t divide(uint64_t a, uint64_t b)
{
	return b ? a / b : a;
}

static uint64_t rotate(uint64_t a, uint64_t b)
{
	return a << (b & 63) | a >> (-b & 63);
}

static struct pair swapped(struct pair p)
{
	return (struct pair){p.high, p.low};
}

static struct pair ordered(struct pair p)
{
	return p.low <= p.high ? p : swapped(p);
}

static struct block turned(struct block b)
{
	struct block r;

	for (unsigned i = 0; i < 6; i++)
		r.word[i] = b.word[5 - i];
	return r;
}

static struct block summed(struct block b)
{
	for (unsigned i = 1; i < 6; i++)
		b.word[i] += b.word[i - 1];
	return b;
}

static operation *const by_number[8] = {add, subtract, multiply, divide, NULL, rotate, NULL, add};
static const struct {
	char name[8];
	operation *does;
} by_name[] = {{"add", add}, {"sub", subtract}, {"rot", rotate}};

PROBE("libc!write")
{
	uint64_t program = event->arg[1];
	struct pair (*pairs)(struct pair) = event->arg[0] & 1 ? swapped : ordered;
	struct block (*blocks)(struct block) = event->arg[0] & 2 ? turned : summed;
	struct block b = {{event->arg[0], event->arg[1], event->arg[2], 4, 5, 6}};
	struct pair p;

	for (unsigned i = 0; i < 8; i++, program >>= 8) {
		operation *does = by_number[program & 7];
		uint64_t *target = &state->reg[program >> 3 & 7];

		if (!does) {
			state->unknown++;
			continue;
		}
		*target = does(*target, event->arg[2] + i);
		if (does == multiply)
			state->steps += 3;
		state->steps++;
	}
	for (unsigned i = 0; i < 3; i++)
		if (by_name[i].name[0] == (char)event->arg[0])
			state->reg[i] = by_name[i].does(state->reg[i], 3);
	p = pairs((struct pair){event->arg[2], event->arg[0]});
	b = blocks(b);
	state->low += p.low + b.word[0];
	state->high ^= p.high + b.word[5];
}
