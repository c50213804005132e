/* SPDX-License-Identifier: MIT */
/* Reads numbers, a line each: calls counted() as often in each of two threads together, and prints
 * the sum of calls so far. Ends at the input's end. */
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

uint64_t counted(uint64_t number);

__attribute__((noinline, noclone)) uint64_t counted(uint64_t number)
{
	__asm__ volatile("" ::: "memory");
	return number + 1;
}

static void *run(void *argument)
{
	for (uint64_t i = 0, n = *(uint64_t *)argument; i < n; i++)
		counted(i);
	return NULL;
}

int main(void)
{
	uint64_t number, sum = 0;
	printf("did 0\n");
	fflush(stdout);
	while (scanf("%" SCNu64, &number) == 1) {
		pthread_t thread;
		uint64_t half = number / 2, rest = number - half;
		if (pthread_create(&thread, NULL, run, &half))
			return 1;
		run(&rest);
		pthread_join(thread, NULL);
		printf("did %" PRIu64 "\n", sum += number);
		fflush(stdout);
	}
	return 0;
}
