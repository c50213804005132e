/* SPDX-License-Identifier: MIT */
/* Calls whose arguments and results are known: recursion, calls that are left by longjmp, a tail
 * call, many threads. Prints nothing. */
#include <pthread.h>
#include <setjmp.h>
#include <stddef.h>

#define CALLED __attribute__((noinline, noclone))
#define AFTER() __asm__ volatile("" ::: "memory") /* no tail call */
#define THREADS 4

static __thread jmp_buf out;

long doubled(long kind, long x);
CALLED long doubled(long kind, long x)
{
	__asm__ volatile("" : "+r"(x), "+r"(kind));
	return 2 * x;
}

long summed(long kind, long n);
CALLED long summed(long kind, long n)
{
	long rest = n ? summed(kind, n - 1) : 0;
	AFTER();
	return rest + n;
}

long left(long kind, long depth);
CALLED long left(long kind, long depth)
{
	if (!depth)
		longjmp(out, 1);
	long result = left(kind, depth - 1);
	AFTER();
	return result;
}

/* Its jump has the same stack pointer as itself. */
long passed_on(long kind, long x);
CALLED long passed_on(long kind, long x)
{
	return doubled(kind + 10, x + 1);
}

static void *work(void *argument)
{
	for (long i = 0; i < 1000; i++) {
		doubled(1, i);
		if (i % 10 == 0)
			summed(2, 100);
		if (i % 100 == 0 && !setjmp(out))
			left(3, 20);
		passed_on(4, i);
	}
	return argument;
}

int main(void)
{
	pthread_t threads[THREADS];
	for (unsigned i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			return 1;
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
