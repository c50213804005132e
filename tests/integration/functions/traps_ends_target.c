/* SPDX-License-Identifier: MIT */
/*
 * A program with functions that have an exit where no jump fits (traps_ends.S). Reads commands, a
 * line each, and answers each with a line:
 *
 *	run T N		T threads call every function N times, with the numbers from 1 to N; each
 *			condition with all combinations of flags
 *	fork N		a child does so, and ends
 *	left N		of N calls every second one is left by longjmp, after which there is a pause
 *			if N is 2
 *	pause		a call that takes 20 ms
 *	moved		a call that begins in one thread and returns in another
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "run_threads.h"

#define FLAGS 32
#define RECURSION 5

extern long (*const ends_conditions[16])(long flags);
void ends_nothing(void);
long ends_other(long n);
long ends_thunk(long n);
long ends_dead(long n);
long reads_data(void);
long ends_call(long n, void (*call)(long n));
long ends_recursive(long n);
long ends_somewhere(long n, long (*other)(long));
long ends_table(long n, long (*other)(long));
long ends_entered(long n);
long ends_enters(long n);
long ends_shared(long n);
long ends_shares(long n);

static unsigned long rounds;
static jmp_buf back;
static ucontext_t outside, inside;

/* Carry, parity, zero, sign and overflow, beside the bit that is always set and interrupts. */
static long flags_of(unsigned bits)
{
	static const unsigned short flags[] = { 1, 4, 64, 128, 2048 };
	long all = 0x202;

	for (unsigned i = 0; i < 5; i++)
		all |= bits >> i & 1 ? flags[i] : 0;
	return all;
}

static void nothing(long n)
{
	(void)n;
}

static void *run(void *argument)
{
	unsigned long sum = 0;

	for (unsigned long i = 1; i <= rounds; i++) {
		long n = (long)i;

		sum += (unsigned long)(ends_call(n, nothing) + ends_recursive(RECURSION) +
				       ends_somewhere(n, ends_other) + ends_table(n, ends_other) +
				       ends_entered(n) + ends_enters(n) + ends_shared(n) +
				       ends_shares(n) + ends_thunk(n) + ends_dead(n) +
				       reads_data());
	}
	for (unsigned bits = 0; bits < FLAGS; bits++)
		for (unsigned i = 0; i < 16; i++)
			sum += (unsigned long)ends_conditions[i](flags_of(bits));
	*(unsigned long *)argument = sum;
	return NULL;
}

static void run_child(void)
{
	pid_t child = fork();
	unsigned long sum;

	if (!child) {
		run(&sum);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	printf("forked\n");
}

static void leave(long n)
{
	if (n % 2)
		longjmp(back, 1);
}

static void be_left(void)
{
	for (volatile long n = 1; n <= (long)rounds; n++) {
		if (!setjmp(back))
			ends_call(n, leave);
		if (rounds == 2 && n == 1)
			usleep(300000);
	}
	printf("left\n");
}

static void pause_here(long n)
{
	usleep((unsigned)n * 1000);
}

static void yield(long n)
{
	(void)n;
	swapcontext(&inside, &outside);
}

static void coroutine(void)
{
	ends_call(7, yield);
	swapcontext(&inside, &outside);
}

static void *go_on(void *argument)
{
	swapcontext(&outside, &inside);
	return argument;
}

/* Begins in a thread of its own, and goes on in this one. */
static void move(void)
{
	static char stack[65536];
	pthread_t thread;

	getcontext(&inside);
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = sizeof(stack);
	makecontext(&inside, coroutine, 0);
	pthread_create(&thread, NULL, go_on, NULL);
	pthread_join(thread, NULL);
	go_on(NULL);
	printf("moved\n");
}

int main(void)
{
	char line[100];
	unsigned threads;

	setvbuf(stdin, NULL, _IONBF, 0);
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "run %u %lu", &threads, &rounds) == 2)
			run_threads(threads, run, "ran");
		else if (sscanf(line, "fork %lu", &rounds) == 1)
			run_child();
		else if (sscanf(line, "left %lu", &rounds) == 1)
			be_left();
		else if (!strncmp(line, "pause", 5))
			printf("paused %ld\n", ends_call(20, pause_here));
		else if (!strncmp(line, "moved", 5))
			move();
		fflush(stdout);
	}
	return 0;
}
