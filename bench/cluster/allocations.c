/* SPDX-License-Identifier: MIT */
/*
 * A program that allocates, for bench/cluster/cluster_overhead.sh:
 *
 *     allocations PROCESSES THREADS WORK
 *
 * starts so many processes of so many threads each. For each number read from standard input they
 * make as many allocations together, the same number in each thread, and print
 *
 *     ALLOCATIONS PROCESSOR-NANOSECONDS
 *
 * where the time is that of all threads in their loops, as CLOCK_THREAD_CPUTIME_ID tells it: what
 * else runs on the machine is not in it. A thread keeps its newest 64 blocks of 16 to 1,024 bytes.
 * WORK 0: it writes a block's first word; 1: all of it; more: and reads it so many times less one,
 * multiplying and adding up.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "fay/clock.h"

#define KEPT 64u
#define STACK (64u << 10)

/* Of all processes. */
static struct shared {
	pthread_barrier_t begin, end;
	uint64_t each; /* allocations of a thread in this round */
	uint64_t ns;
} *shared;
static unsigned work;

static uint64_t digest(const uint64_t *words, size_t count, uint64_t sum)
{
	for (size_t i = 0; i < count; i++)
		sum = (sum ^ words[i]) * 0x9fb21c651e98df25u;
	return sum;
}

static void allocate(uint64_t count, uint64_t *kept[KEPT], uint32_t *seed)
{
	for (uint64_t i = 0; i < count; i++) {
		uint64_t **block = &kept[i % KEPT];
		*seed = *seed * 1664525u + 1013904223u;
		size_t words = 2 + (*seed >> 22) % 127;
		free(*block);
		*block = malloc(words * sizeof(**block));
		if (!*block)
			abort();
		if (work)
			memset(*block, (int)i, words * sizeof(**block));
		else
			*(volatile uint64_t *)*block = i;
		for (unsigned pass = 1; pass < work; pass++)
			(*block)[0] = digest(*block, words, i);
	}
}

static void *run(void *argument)
{
	uint64_t *kept[KEPT] = { 0 };
	uint32_t seed = (uint32_t)(uintptr_t)&kept;
	for (;;) {
		pthread_barrier_wait(&shared->begin);
		uint64_t since = fay_clock(CLOCK_THREAD_CPUTIME_ID);
		allocate(shared->each, kept, &seed);
		__atomic_fetch_add(&shared->ns, fay_clock(CLOCK_THREAD_CPUTIME_ID) - since,
				   __ATOMIC_RELAXED);
		pthread_barrier_wait(&shared->end);
	}
	return argument;
}

static int run_process(unsigned threads)
{
	pthread_attr_t attributes;
	pthread_t thread;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	for (unsigned i = 1; i < threads; i++)
		if (pthread_create(&thread, &attributes, run, NULL))
			abort();
	run(NULL);
	return 0;
}

static void share(unsigned waiting)
{
	pthread_barrierattr_t attributes;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		abort();
	pthread_barrierattr_init(&attributes);
	pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&shared->begin, &attributes, waiting);
	pthread_barrier_init(&shared->end, &attributes, waiting);
}

int main(int argc, char **argv)
{
	unsigned processes = argc == 4 ? (unsigned)atoi(argv[1]) : 0,
		 threads = argc == 4 ? (unsigned)atoi(argv[2]) : 0;
	char line[32];
	if (!processes || !threads) {
		fprintf(stderr, "usage: %s PROCESSES THREADS WORK\n", argv[0]);
		return 2;
	}
	work = (unsigned)atoi(argv[3]);
	share(processes * threads + 1);
	for (unsigned i = 0; i < processes; i++)
		if (!fork())
			return run_process(threads);
	prctl(PR_SET_NAME, "allocations.all");
	while (fgets(line, sizeof(line), stdin)) {
		shared->each = strtoull(line, NULL, 10) / (processes * threads);
		shared->ns = 0;
		pthread_barrier_wait(&shared->begin);
		pthread_barrier_wait(&shared->end);
		printf("%lu %lu\n", shared->each * processes * threads, shared->ns);
		fflush(stdout);
	}
	return 0;
}
