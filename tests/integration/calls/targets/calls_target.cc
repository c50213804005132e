// SPDX-License-Identifier: MIT
// What calls can do other than return, one scenario a run. All functions named traced_* are traced
// by the test (calls.sh). Each scenario checks for itself
// that the program works as it would untraced, and ends by printing how many of these calls began,
// returned, and were left by unwinding:
//
//     calls_target SCENARIO [ROUNDS [wait]]  ->  "ENTRIES RETURNS EXCEPTIONS"
#include "calls_target.h"

#include <alloca.h>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <execinfo.h>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

std::atomic<long> entries, returns, exceptions;
long rounds = 100, destroyed;

void expect(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "calls_target: %s\n", what);
	_exit(70);
}

void tally(long e, long r, long x)
{
	entries += e;
	returns += r;
	exceptions += x;
}

// ---- arguments and values ----

struct large {
	long word[40];
};
struct pair {
	long a, b;
};
TRACED long traced_many(long a, long b, long c, long d, long e, long f, long g, long h,
			struct large l, long i)
{
	CLOBBER;
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + l.word[0] + l.word[39] +
	       i;
}
TRACED long traced_variadic(int count, ...)
{
	va_list args;
	long sum = 0;
	va_start(args, count);
	for (int i = 0; i < count; i++)
		sum += i % 3 == 2 ? (long)va_arg(args, double) : va_arg(args, long);
	va_end(args);
	return sum;
}
TRACED struct large traced_large(long x)
{
	struct large l = {};
	l.word[0] = x;
	l.word[39] = 2 * x;
	CLOBBER;
	return l;
}
TRACED struct pair traced_pair(long x)
{
	CLOBBER;
	return { x, x + 1 };
}
TRACED double traced_double(double x)
{
	CLOBBER;
	return x * 1.5;
}
TRACED long double traced_long_double(long double x)
{
	CLOBBER;
	return x * 2;
}
TRACED long traced_alloca(long n)
{
	char *bytes = (char *)alloca(n);
	memset(bytes, 1, n);
	CLOBBER;
	return bytes[n - 1] + n;
}

static void values()
{
	for (long i = 0; i < rounds; i++) {
		struct large l = traced_large(i);
		struct pair p = traced_pair(i);
		expect(l.word[0] == i && l.word[39] == 2 * i, "a structure in memory");
		expect(p.a == i && p.b == i + 1, "a structure in two registers");
		expect(traced_many(1, 2, 3, 4, 5, 6, 7, 8, l, i) == 204 + 4 * i,
		       "arguments on the stack");
		expect(traced_variadic(9, 1L, 2L, 3.0, 4L, 5L, 6.0, 7L, 8L, i * 1.0) == 36 + i,
		       "variable arguments");
		expect(traced_double(2.0 * i) == 3.0 * i, "a double");
		expect(traced_long_double(i) == 2.0L * i, "a long double");
		expect(traced_alloca(i + 100) == i + 101, "alloca");
		tally(7, 7, 0);
	}
}

// ---- recursion and tail calls ----

TRACED long traced_depth(long n)
{
	CLOBBER;
	if (n == 0)
		return 0;
	long below = traced_depth(n - 1);
	CLOBBER;
	return below + 1;
}
static void recursion()
{
	for (long depth : { 0L, 1L, 20L, 21L, 100L, 3000L }) {
		expect(traced_depth(depth) == depth, "recursion");
		tally(depth + 1, depth + 1, 0);
	}
}
// Deeper than calls are watched: the rest runs unwatched and is counted as lost.
static void deep()
{
	expect(traced_depth(20000) == 20000, "deep recursion");
	tally(20001, 20001, 0);
}

TRACED long traced_tail_end(long x)
{
	CLOBBER;
	if (x < 0)
		throw std::runtime_error("tail");
	return x + 1;
}
TRACED long traced_tail_middle(long x);
TRACED long traced_tail(long x);
/* clang-format off */
asm(".text\n.globl traced_tail\n.type traced_tail,@function\ntraced_tail:\n.cfi_startproc\n\tadd $1,%rdi\n\tlea (%rdi),%rdi\n\tjmp traced_tail_middle\n"
    ".cfi_endproc\n.size traced_tail,.-traced_tail\n"
    ".globl traced_tail_middle\n.type traced_tail_middle,@function\ntraced_tail_middle:\n.cfi_startproc\n\tadd $1,%rdi\n\tlea (%rdi),%rdi\n\tjmp traced_tail_end\n"
    ".cfi_endproc\n.size traced_tail_middle,.-traced_tail_middle\n");
/* clang-format on */
static void tail()
{
	for (long i = 0; i < rounds; i++) {
		expect(traced_tail(i) == i + 3, "tail calls");
		tally(3, 3, 0);
		try {
			traced_tail(-5);
			expect(false, "no exception");
		} catch (const std::runtime_error &) {
		}
		tally(3, 0, 3);
	}
}

// ---- exceptions ----

TRACED long traced_throw(long x)
{
	guard g;
	CLOBBER;
	if (x % 2)
		throw std::string("odd");
	return x;
}
TRACED long traced_pass(long x)
{
	guard g;
	return traced_throw(x) + 1;
}
TRACED long traced_catch(long x)
{
	try {
		return traced_pass(x);
	} catch (const std::string &s) {
		expect(s == "odd", "the exception's object");
		return -1;
	}
}
TRACED long traced_rethrow(long x)
{
	try {
		return traced_pass(x);
	} catch (...) {
		guard g;
		throw;
	}
}
TRACED long traced_outer(long x)
{
	long first = traced_catch(x);
	try {
		traced_rethrow(x);
		expect(x % 2 == 0, "no exception");
	} catch (const std::string &) {
		expect(x % 2 == 1, "an exception too many");
	}
	return first + traced_catch(0);
}
static void exceptions_()
{
	destroyed = 0;
	for (long i = 0; i < rounds; i++) {
		expect(traced_outer(i) == (i % 2 ? 0 : i + 2), "the value after an exception");
		tally(10, 0,
		      0); // outer, catch, pass, throw, rethrow, pass, throw, catch, pass, throw
		if (i % 2)
			tally(0, 5, 5); // outer, three catches, pass and throw of the last
		else
			tally(0, 10, 0);
	}
	expect(destroyed == rounds * 6 + rounds / 2, "a destructor did not run");
	bool caught = false;
	try {
		traced_pass(1);
	} catch (...) {
		caught = true;
	}
	expect(caught, "catch in an untraced function");
	tally(2, 0, 2);
}
// An exception that nobody catches ends in std::terminate, as ever.
static void uncaught()
{
	pid_t child = fork();
	int status;
	if (child == 0) {
		std::set_terminate([] { _exit(42); });
		traced_pass(1);
		_exit(1);
	}
	waitpid(child, &status, 0);
	expect(WIFEXITED(status) && WEXITSTATUS(status) == 42, "std::terminate");
}

// ---- the unwinder as a mirror ----

static _Unwind_Reason_Code frame(struct _Unwind_Context *context, void *count)
{
	(void)context;
	++*(int *)count;
	return _URC_NO_REASON;
}
TRACED int traced_backtrace(void **pcs, int max)
{
	int frames = 0, found = backtrace(pcs, max);
	_Unwind_Backtrace(frame, &frames);
	CLOBBER;
	return frames - found <= 1 ? found : -found;
}
TRACED int traced_backtrace_outer(void **pcs, int max)
{
	int found = traced_backtrace(pcs, max);
	CLOBBER;
	return found;
}
__attribute__((noinline)) static int untraced_backtrace(void **pcs, int max)
{
	int found = backtrace(pcs, max);
	CLOBBER;
	return found;
}
static void mirror()
{
	for (long i = 0; i < rounds; i++) {
		void *with[64], *without[64];
		int n = traced_backtrace_outer(with, 64), m = untraced_backtrace(without, 64);
		expect(n > 0, "backtrace() and _Unwind_Backtrace() disagree");
		// Watched calls show one frame more each, an address outside all modules; all
		// others are as untraced.
		int named = 0;
		Dl_info info;
		for (int k = 0; k < n; k++)
			named += dladdr(with[k], &info) != 0;
		expect(named == m + 1, "a frame is missing");
		for (int k = 2; k < m; k++)
			expect(with[n - m + k] == without[k], "the outer frames differ");
		tally(2, 2, 0);
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)();
	} scenarios[] = {
		{ "values", values },
		{ "recursion", recursion },
		{ "deep", deep },
		{ "tail", tail },
		{ "exceptions", exceptions_ },
		{ "uncaught", uncaught },
		{ "mirror", mirror },
		{ "jumps", jumps },
		{ "signals", signals },
		{ "timer", timer },
		{ "coroutines", coroutines },
		{ "migration", migration },
		{ "thread_exit", thread_exit },
		{ "forks", forks },
		{ "processes", processes },
		{ "threads", threads },
		{ "waiting", waiting },
	};
	const char *name = argc > 1 ? argv[1] : "";
	if (argc > 2)
		rounds = atol(argv[2]);
	if (!strcmp(name, "exit") || !strcmp(name, "exec"))
		traced_end(name);
	for (auto &s : scenarios) {
		if (strcmp(s.name, name))
			continue;
		if (argc > 3) {
			puts("ready");
			fflush(stdout);
			getchar();
		}
		s.run();
		printf("%ld %ld %ld\n", entries.load(), returns.load(), exceptions.load());
		return 0;
	}
	fprintf(stderr, "calls_target: no scenario '%s'\n", name);
	return 2;
}
