/* SPDX-License-Identifier: MIT */
/* longjmp in loops, out of signal handlers too, and many signals. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/time.h>

#include "foreign.h"

enum { TIMES = 300 };
static sigjmp_buf back, inner_back;

TRACED void traced_jump(long x)
{
	CLOBBER;
	siglongjmp(back, (int)x + 1);
}
TRACED long traced_between(long x)
{
	if (x % 3)
		traced_jump(x);
	CLOBBER;
	return x;
}
/* A jump within calls that a later jump leaves. */
TRACED long traced_twice(volatile long x)
{
	if (!sigsetjmp(inner_back, 0)) {
		CLOBBER;
		longjmp(inner_back, 1);
	}
	return traced_between(x) + 1;
}
static long loop(void)
{
	volatile long sum = 0;

	for (volatile long i = 0; i < TIMES; i++) {
		int got = sigsetjmp(back, i & 1);
		if (!got)
			sum += traced_twice(i);
		else
			sum += got;
		tally(i % 3 ? 3 : 2, i % 3 ? 0 : 2, i % 3 ? 3 : 0);
	}
	return sum;
}

/* An interpreter whose errors are jumps: protected calls within each other. */
struct protection {
	jmp_buf buffer;
	struct protection *outer;
} *innermost;
TRACED void traced_error(int code)
{
	CLOBBER;
	_longjmp(innermost->buffer, code);
}
TRACED long traced_eval(long depth)
{
	struct protection own = { .outer = innermost };
	volatile long sum = 0;

	if (depth == 0)
		traced_error(7);
	innermost = &own;
	int code = _setjmp(own.buffer);
	if (!code)
		sum = traced_eval(depth - 1);
	innermost = own.outer;
	if (code && depth % 2)
		traced_error(code + 1);
	return sum + code + depth;
}
static long interpreter(void)
{
	long sum = 0;

	for (long i = 0; i < 50; i++)
		sum += traced_eval(4); /* the calls of 0, 1 and two of traced_error() are left */
	tally(50 * 7, 50 * 3, 50 * 4);
	return sum;
}

/* Faults that are survived, on the stack and on another. */
static char *volatile nowhere = (char *)8;
static void on_fault(int number)
{
	siglongjmp(back, number);
}
TRACED long traced_fault(long x)
{
	CLOBBER;
	*nowhere = (char)x;
	return x;
}
TRACED long traced_call_fault(long x)
{
	long y = traced_fault(x);
	CLOBBER;
	return y + 1;
}
static long survive(int flags)
{
	static char stack[1 << 16];
	stack_t other = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_handler = on_fault, .sa_flags = flags };
	volatile long sum = 0;

	sigaltstack(&other, NULL);
	sigaction(SIGSEGV, &action, NULL);
	for (volatile long i = 0; i < TIMES; i++) {
		int got = sigsetjmp(back, 1);
		if (!got)
			traced_call_fault(i);
		sum += got;
		tally(2, 0, 2);
	}
	return sum;
}
static long faults(void)
{
	return survive(0);
}
static long faults_other_stack(void)
{
	return survive(SA_ONSTACK);
}

/* Signals without a pause, whose handlers call, throw nothing, and return. */
static volatile sig_atomic_t over;
static __thread volatile long handled;
TRACED long traced_leaf(long x)
{
	CLOBBER;
	return x + 1;
}
TRACED long traced_caller(long x)
{
	long y = traced_leaf(x);
	CLOBBER;
	return y + 1;
}
static void on_signal(int number)
{
	long x = number + handled; /* handlers interrupt each other */
	expect(traced_caller(x) == x + 2, "a value in a handler");
	__atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}
static void *send(void *to)
{
	while (!over) {
		pthread_kill(*(pthread_t *)to, SIGUSR1);
		pthread_kill(*(pthread_t *)to, SIGUSR2);
		usleep(50);
	}
	return NULL;
}
static long signals(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct sigaction other = { .sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK };
	static char stack[1 << 16];
	stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
	pthread_t self = pthread_self(), sender;
	long sum = 0;

	sigaltstack(&alternate, NULL);
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &other, NULL);
	over = 0;
	handled = 0;
	pthread_create(&sender, NULL, send, &self);
	for (long i = 0; i < 20000 || handled < 20; i++) {
		long y = traced_caller(i);
		expect(y == i + 2, "a value beside handlers");
		sum += i < 20000 ? y : 0;
		tally(2, 2, 0);
	}
	over = 1;
	pthread_join(sender, NULL);
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	tally(2 * handled, 2 * handled, 0);
	return sum;
}

/* A timer whose handler jumps out of whatever is under way: probes, trampolines, the run-time. */
static volatile sig_atomic_t may_jump;
static volatile long jumps;
static void on_timer(int number)
{
	(void)number;
	if (!may_jump)
		return;
	may_jump = 0;
	jumps++;
	siglongjmp(back, 1);
}
static long timer(void)
{
	struct itimerval often = { { 0, 300 }, { 0, 300 } }, never = { { 0, 0 }, { 0, 0 } };
	volatile long i = 0;

	signal(SIGALRM, on_timer);
	jumps = 0;
	sigsetjmp(back, 1);
	setitimer(ITIMER_REAL, &often, NULL);
	may_jump = jumps < 100;
	while (jumps < 100) {
		expect(traced_caller(i) == i + 2, "a value beside jumps");
		i++;
	}
	may_jump = 0;
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_IGN);
	return jumps;
}

SCENARIOS({ "loop", loop }, { "interpreter", interpreter }, { "faults", faults },
	  { "faults_other_stack", faults_other_stack }, { "signals", signals }, { "timer", timer })
