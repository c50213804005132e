/* SPDX-License-Identifier: MIT */
/*
 * Calls the functions of many.S. Says "ready"; then for each line on standard input, a number of
 * rounds: in each, function i is called 1 + i % 3 times. Says "sum S" for what was returned, "done"
 * at the end. With an argument it calls them all the time, and says each second how many rounds it
 * made and the longest time, in nanoseconds, that one took.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define COUNT 10000u

typedef uint64_t function(uint64_t value);
extern function *const functions[COUNT];

static uint64_t run_round(void)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < COUNT; i++)
		for (unsigned k = 0; k <= i % 3; k++)
			value = functions[i](value);
	return value;
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void run_on(void)
{
	for (;;) {
		uint64_t begin = now(), last = begin, rounds = 0, longest = 0;

		do {
			uint64_t after;

			run_round();
			after = now();
			longest = after - last > longest ? after - last : longest;
			last = after;
			rounds++;
		} while (last - begin < 1000000000u);
		printf("%" PRIu64 " %" PRIu64 "\n", rounds, longest);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	unsigned rounds;

	printf("ready\n");
	fflush(stdout);
	if (argc > 1)
		run_on();
	while (scanf("%u", &rounds) == 1) {
		uint64_t sum = 0;

		while (rounds--)
			sum += run_round();
		printf("sum %" PRIu64 "\n", sum);
		fflush(stdout);
	}
	printf("done\n");
	return 0;
}
