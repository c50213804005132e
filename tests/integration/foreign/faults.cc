// SPDX-License-Identifier: MIT
// Faults that become C++ exceptions (-fnon-call-exceptions): foreign_exceptions.sh.
#include <csignal>

#include "foreign.h"

struct fault {
};

static void on(int signal)
{
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, signal);
	sigprocmask(SIG_UNBLOCK, &mask, nullptr);
	throw fault();
}

TRACED long traced_touch(long v)
{
	CLOBBER;
	return v;
}
/* The load is in front of its ret, alone, and where its own handler is. */
TRACED long traced_load(long v, const long *p)
{
	traced_touch(v);
	return *p;
}
TRACED long traced_leaf(long, const long *p)
{
	return *p;
}
TRACED long traced_own(long v, const long *p)
{
	try {
		return *p + v;
	} catch (fault &) {
		return 1;
	}
}
TRACED long traced_divide(long v, long by)
{
	return v / by;
}

static long faults()
{
	static const long one = 1;
	const long *nowhere = reinterpret_cast<const long *>(8);
	long sum = 0;

	signal(SIGSEGV, on);
	signal(SIGFPE, on);
	for (long i = 0; i < 100; i++) {
		try {
			sum += traced_load(i, &one);
			sum += traced_load(i, nowhere);
		} catch (fault &) {
			sum++;
		}
		try {
			sum += traced_leaf(i, nowhere);
		} catch (fault &) {
			sum++;
		}
		try {
			sum += traced_divide(i, i % 2);
		} catch (fault &) {
			sum++;
		}
		sum += traced_own(i, &one) + traced_own(i, nowhere);
	}
	return sum;
}

SCENARIOS({ "faults", faults })
