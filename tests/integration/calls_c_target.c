/* SPDX-License-Identifier: MIT */
/*
 * A C program, which has no unwinder of its own: libgcc_s is loaded by the C library when a thread is cancelled or exits, or backtrace() is first
 * called. Prints "ENTRIES RETURNS EXCEPTIONS" of its traced_* functions.
 */
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TRACED __attribute__((noinline, noclone)) 
#define CLOBBER __asm__ volatile("" ::: "memory")

static long entries, returns, exceptions;
static int cleaned;
static jmp_buf back;

static void clean(void *argument)
{
	(void)argument;
	cleaned++;
}
TRACED long traced_leave(long how);
TRACED long traced_leave(long how)
{
	if (how == 0)
		longjmp(back, 1);
	if (how == 1)
		pthread_exit((void *)5);
	pause();
	return how;
}
TRACED long traced_outer(long how);
TRACED long traced_outer(long how)
{
	long result;

	pthread_cleanup_push(clean, NULL);
	result = traced_leave(how);
	pthread_cleanup_pop(0);
	CLOBBER;
	return result;
}
static void *start(void *how)
{
	long result = traced_outer((long)how);

	CLOBBER;
	return (void *)result;
}
TRACED int traced_backtrace(void **frames);
TRACED int traced_backtrace(void **frames)
{
	int count = backtrace(frames, 32);

	CLOBBER;
	return count;
}
TRACED int traced_backtrace_outer(void **frames);
TRACED int traced_backtrace_outer(void **frames)
{
	int count = traced_backtrace(frames);

	CLOBBER;
	return count;
}

int main(void)
{
	void *frames[32], *plain[32];

	for (volatile int i = 0; i < 50; i++) {
		pthread_t thread;
		void *value;

		if (!setjmp(back))
			traced_outer(0);
		pthread_create(&thread, NULL, start, (void *)(1L + i % 2));
		if (i % 2) {
			usleep(1000);
			pthread_cancel(thread);
		}
		pthread_join(thread, &value);
		if (value != (i % 2 ? PTHREAD_CANCELED : (void *)5))
			return 70;
		entries += 4;
		exceptions += 3; /* glibc itself jumps from traced_leave() to the clean-up in traced_outer(): no event */
	}
	if (cleaned != 50)
		return 71;
	/* traced_backtrace, its outer, main, and the C library's two; each watched call shows once more. */
	if (traced_backtrace_outer(frames) < backtrace(plain, 32) + 2)
		return 72;
	printf("%ld %ld %ld\n", entries + 2, returns + 2, exceptions);
	return 0;
}
