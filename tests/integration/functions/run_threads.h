/* SPDX-License-Identifier: MIT */
#ifndef FAY_TESTS_INTEGRATION_FUNCTIONS_RUN_THREADS_H
#define FAY_TESTS_INTEGRATION_FUNCTIONS_RUN_THREADS_H

#include <pthread.h>
#include <stdio.h>

/* Runs so many threads, 16 at most, each of which leaves a sum where its argument points to. Prints
 * their sum behind the word. */
static void run_threads(unsigned count, void *(*run)(void *sum), const char *word)
{
	pthread_t threads[16];
	unsigned long sums[16], sum = 0;

	for (unsigned i = 0; i < count && i < 16; i++)
		pthread_create(&threads[i], NULL, run, &sums[i]);
	for (unsigned i = 0; i < count && i < 16; i++) {
		pthread_join(threads[i], NULL);
		sum += sums[i];
	}
	printf("%s %lu\n", word, sum);
}

#endif
