/* SPDX-License-Identifier: MIT */
/*
 * `budget_target`: calls hot() all the time, and for each 20 million of those rare() and leads(),
 * which jumps to hot() at its end, until a line comes on standard input. Then prints how often it
 * called each, and waits for another line.
 * Then calls hot() a thousand times at leisure, and waits for a third one.
 * `budget_target burst`: calls hot() for a second and ends.
 * `budget_target seldom`: rests most of six seconds or more, and else calls hot() and computes;
 * prints how often it called it.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

uint64_t hot(uint64_t x);
uint64_t rare(uint64_t x);
uint64_t leads(uint64_t x);

__attribute__((noinline, noclone)) uint64_t hot(uint64_t x)
{
	__asm__ volatile("" ::: "memory");
	return x * 5;
}

__attribute__((noinline, noclone)) uint64_t rare(uint64_t x)
{
	__asm__ volatile("" ::: "memory");
	return x * 7;
}

__attribute__((noinline, noclone)) uint64_t leads(uint64_t x)
{
	__asm__ volatile("" ::: "memory");
	return hot(x + 1);
}

static uint64_t burst(void)
{
	time_t end = time(NULL) + 2;
	uint64_t sum = 0;
	while (time(NULL) < end)
		for (unsigned i = 0; i < 100000; i++)
			sum += hot(i);
	return sum;
}

static uint64_t seldom(void)
{
	uint64_t hots = 0, sum = 0;
	for (unsigned round = 0; round < 1200; round++) {
		for (unsigned i = 0; i < 5000; i++, hots++)
			sum += hot(i);
		for (volatile unsigned i = 0; i < 60000; i++)
			;
		usleep(5000);
	}
	printf("%" PRIu64 "\n", hots);
	return sum;
}

int main(int argc, char **argv)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	uint64_t hots = 0, rares = 0, sum = 0;
	if (argc > 1)
		return (*argv[1] == 's' ? seldom() : burst()) == 1;
	printf("ready\n");
	fflush(stdout);
	getchar();
	while (poll(&input, 1, 0) == 0) {
		for (unsigned i = 0; i < 20000000; i++, hots++)
			sum += hot(i);
		sum += rare(sum) + leads(sum);
		rares++;
		hots++;
	}
	getchar();
	printf("hot %" PRIu64 " rare %" PRIu64 " leads %" PRIu64 " sum %" PRIu64 "\n", hots, rares,
	       rares, sum);
	fflush(stdout);
	getchar();
	for (unsigned i = 0; i < 1000; i++) {
		sum += hot(i);
		usleep(100);
	}
	printf("slow 1000 %" PRIu64 "\n", sum);
	fflush(stdout);
	getchar();
	return 0;
}
