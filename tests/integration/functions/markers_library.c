/* SPDX-License-Identifier: MIT */
/* A shared object with a marker that has no semaphore. */
#include <sys/sdt.h>

unsigned long library_step(unsigned long n);

__attribute__((noinline)) unsigned long library_step(unsigned long n)
{
	unsigned long sum = n * 3;

	DTRACE_PROBE2(faylib, step, n, sum);
	return sum ^ (n << 7);
}
