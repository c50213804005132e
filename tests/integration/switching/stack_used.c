/* SPDX-License-Identifier: MIT */
/* Calls probed() on a stack whose bytes below are known, in two threads one after the other; prints
 * how many bytes below the call's return address were changed at most. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#define KNOWN 6000u
#define CALLS 20000

__attribute__((noipa)) long probed(long a, const char *text)
{
	__asm__ volatile("nop; nop; nop; nop; nop; nop" ::"r"(text) : "memory");
	return a;
}

__attribute__((noipa)) static unsigned used(long a)
{
	uint8_t *stack;

	__asm__ volatile("mov %%rsp, %0" : "=r"(stack));
	volatile uint8_t *low = stack - KNOWN;
	for (unsigned i = 0; i < KNOWN - 100; i++)
		low[i] = 0xa5;
	probed(a, "text of some length, to be read");
	for (unsigned i = 0; i < KNOWN - 100; i++)
		if (low[i] != 0xa5)
			return KNOWN - i - (unsigned)sizeof(void *);
	return 0;
}

static void *run(void *most)
{
	for (long i = 0; i < CALLS; i++) {
		unsigned bytes = used(i);

		if (bytes > *(unsigned *)most)
			*(unsigned *)most = bytes;
	}
	return NULL;
}

int main(void)
{
	unsigned most = 0;

	for (int i = 0; i < 2; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, run, &most);
		pthread_join(thread, NULL);
	}
	printf("%u\n", most);
	return 0;
}
