/* SPDX-License-Identifier: MIT */
/*
 * Calls each of the awkward functions as often as each line on standard input says, says "ok" if
 * all results were right; "ready" first and "done" at the end. In one source for all compilers: gcc
 * and clang, dynamic, static and static-pie.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef uint64_t function(uint64_t value, uint64_t rounds);
function short_padded, short_crowded, crowding, with_endbr, tail_call, leaf, red_zone,
	loop_back_far, loop_back_end, loop_inside, loop_behind, indirect, by_retpoline, plt_entry,
	entered_inside, enters, moving;

#ifdef __clang__
#define WHOLE __attribute__((noinline))
#else
#define WHOLE __attribute__((noipa)) /* no clone with other arguments */
#endif

WHOLE uint64_t variadic(unsigned count, ...)
{
	va_list list;
	uint64_t sum = 0;

	va_start(list, count);
	while (count--)
		sum += va_arg(list, unsigned) + (uint64_t)va_arg(list, double);
	va_end(list);
	return sum;
}

struct big {
	uint64_t words[9];
};

WHOLE struct big by_value(struct big in)
{
	for (unsigned i = 0; i < 9; i++)
		in.words[i] += i;
	return in;
}

WHOLE uint64_t deep(uint64_t n)
{
	__asm__ volatile("" : "+r"(n));
	return n ? deep(n - 1) + 1 : 0;
}

WHOLE static uint64_t chosen_body(uint64_t value)
{
	return value + 1;
}

static uint64_t (*choose(void))(uint64_t)
{
	return chosen_body;
}

uint64_t chosen(uint64_t value) __attribute__((ifunc("choose")));

static int all_right(unsigned i)
{
	static function *const list[] = { short_padded,   short_crowded, crowding,     with_endbr,
					  tail_call,      leaf,          red_zone,     loop_inside,
					  loop_behind,    indirect,      by_retpoline, plt_entry,
					  entered_inside, enters,        moving };
	struct big big = { { i } };
	int right = 1;

	for (unsigned k = 0; k < sizeof(list) / sizeof(list[0]); k++)
		right &= list[k](i, 0) == i + 1;
	right &= loop_back_far(i, 3) == i + 1 && loop_back_end(i, 3) == i + 1;
	right &= variadic(3, i, 1.0, i, 2.0, i, 3.0) == 3 * (uint64_t)i + 6;
	big = by_value(big);
	right &= big.words[0] == i && big.words[8] == 8;
	right &= deep(20) == 20 && chosen(i) == i + 1;
	return right;
}

int main(void)
{
	unsigned rounds;

	printf("ready\n");
	fflush(stdout);
	while (scanf("%u", &rounds) == 1) {
		int right = 1;

		for (unsigned i = 0; i < rounds; i++)
			right &= all_right(i);
		printf(right ? "ok\n" : "wrong\n");
		fflush(stdout);
	}
	printf("done\n");
	return 0;
}
