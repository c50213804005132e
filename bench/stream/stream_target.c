/* SPDX-License-Identifier: MIT */
/*
 * The traced program of stream.sh: threads that call event() at a given rate together. Waits for a
 * line on standard input, runs, and prints how many calls there were and how long they took.
 *
 *     stream_target CALLS_PER_SECOND SECONDS THREADS
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fay/clock.h"

static double rate, seconds;

__attribute__((noinline, visibility("default"))) int event(uint64_t n, uint64_t size);

int event(uint64_t n, uint64_t size)
{
	__asm__ volatile("" ::"r"(n), "r"(size));
	return (int)(n + size);
}

/* As many calls as are due, every few microseconds: the rate is kept however the thread is
 * scheduled. */
static void *run(void *result)
{
	uint64_t start = fay_monotonic(), calls = 0, elapsed;
	while ((elapsed = fay_monotonic() - start) < (uint64_t)(seconds * 1e9)) {
		uint64_t due = (uint64_t)((double)elapsed * rate / 1e9);
		for (; calls < due; calls++)
			event(calls, calls & 4095);
	}
	*(uint64_t *)result = calls;
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t calls[64], total = 0;
	pthread_t threads[64];
	unsigned count = argc == 4 ? (unsigned)atoi(argv[3]) : 0;
	if (!count || count > 64)
		return 2;
	rate = atof(argv[1]) / count;
	seconds = atof(argv[2]);
	puts("ready");
	fflush(stdout);
	if (getchar() == EOF)
		return 1;
	uint64_t start = fay_monotonic();
	for (unsigned i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, run, &calls[i]))
			return 1;
	for (unsigned i = 0; i < count; i++) {
		pthread_join(threads[i], NULL);
		total += calls[i];
	}
	printf("%" PRIu64 " %" PRIu64 "\n", total, fay_monotonic() - start);
	fflush(stdout);
	getchar();
	return 0;
}
