/* SPDX-License-Identifier: MIT */
/*
 * `budget_target`: calls hot() all the time and rare() once for each 20 million of those, until a
 * line comes on standard input. Then prints how often it called each, and waits for another line.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

uint64_t hot(uint64_t x);
uint64_t rare(uint64_t x);

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

int main(void)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	uint64_t hots = 0, rares = 0, sum = 0;
	printf("ready\n");
	fflush(stdout);
	getchar();
	while (poll(&input, 1, 0) == 0) {
		for (unsigned i = 0; i < 20000000; i++, hots++)
			sum += hot(i);
		sum += rare(sum);
		rares++;
	}
	getchar();
	printf("hot %" PRIu64 " rare %" PRIu64 " sum %" PRIu64 "\n", hots, rares, sum);
	fflush(stdout);
	getchar();
	return 0;
}
