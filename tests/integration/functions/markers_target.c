/* SPDX-License-Identifier: MIT */
/*
 * A program with USDT probes as sys/sdt.h makes them. Reads commands, a line each, and answers
 * each with a line:
 *
 *	step T N	T threads go through the marker faytest:step N times each, and as often
 *			through faylib:step
 *	forms N		the functions of markers_forms.S, N times
 *	semaphore	its value
 */
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run_threads.h"

unsigned short faytest_step_semaphore __attribute__((section(".probes")));

unsigned long library_step(unsigned long n);
long forms_registers(long a, long b);
long forms_memory(const long *array, long index);
long forms_constants(const void *pointer, long b);
long forms_joined(void);
long forms_jumper(void);
long forms_short(long a);

static unsigned long steps;

static __attribute__((noinline)) unsigned long step(unsigned long i, int sign)
{
	unsigned long result = i * 2654435761u;

	/* What a marker's arguments cost is spent only if somebody looks. */
	if (faytest_step_semaphore)
		DTRACE_PROBE3(faytest, step, i, sign * 5, (unsigned char)result);
	return result + (unsigned long)sign;
}

static void *run(void *argument)
{
	unsigned long sum = 0;

	for (unsigned long i = 0; i < steps; i++)
		sum += step(i, i & 1 ? -1 : 1) + library_step(i);
	*(unsigned long *)argument = sum;
	return NULL;
}

static void run_forms(long count)
{
	const long array[4] = { 11, 22, 0x7fff8000fffffffe, 44 };
	long sum = 0;

	for (long i = 0; i < count; i++) {
		sum += forms_registers(0x1122334455f6a7c8, 0x8381);
		sum += forms_memory(array, 2);
		sum += forms_constants(i & 1 ? array : NULL, i) + forms_joined() + forms_jumper() +
		       forms_short(i);
	}
	printf("forms %ld\n", sum);
}

int main(void)
{
	char line[100];
	unsigned threads;
	long count;

	setvbuf(stdin, NULL, _IONBF, 0);
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "step %u %lu", &threads, &steps) == 2)
			run_threads(threads, run, "step");
		else if (sscanf(line, "forms %ld", &count) == 1)
			run_forms(count);
		else if (!strncmp(line, "semaphore", 9))
			printf("semaphore %u\n", faytest_step_semaphore);
		fflush(stdout);
	}
	return 0;
}
