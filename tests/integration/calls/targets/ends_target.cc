// SPDX-License-Identifier: MIT
// Ends of calls that two traces watch (ends.sh). Says "ready" and waits for a line; then the
// scenario, which checks for itself that the program works as it would untraced; its last line is
// how many calls of functions named traced_* began, returned, and were left by unwinding or
// longjmp:
//
//     ends_target SCENARIO  ->  "ENTRIES RETURNS EXCEPTIONS"
#include <atomic>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <unwind.h>

#define TRACED extern "C" __attribute__((noinline, noclone, used))
#define CLOBBER asm volatile("" ::: "memory")
// A function that ends in a jump to another: a tail call, whatever the compiler thinks of it.
/* clang-format off */
#define TAIL_CALL(name, to)                                                                                                                                        \
	TRACED long name(long x);                                                                                                                                  \
	asm(".text\n.globl " #name "\n.type " #name ",@function\n" #name ":\n.cfi_startproc\n\tlea 1(%rdi),%rdi\n\tlea (%rdi),%rdi\n\tlea (%rdi),%rdi\n\tjmp " #to "\n.cfi_endproc\n.size " #name ",.-" #name "\n")
/* clang-format on */

enum { TIMES = 6000, STEPS = 40 };
static long entries, returns, exceptions;

static void expect(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "ends_target: %s\n", what);
	_exit(70);
}

static void tally(long e, long r, long x)
{
	entries += e;
	returns += r;
	exceptions += x;
}

static void wait_for_line(const char *what)
{
	puts(what);
	fflush(stdout);
	expect(getchar() == '\n', "end of input");
}

// ---- calls that stay under way until they are told to go on ----

TRACED long traced_wait(long x)
{
	wait_for_line("inside");
	if (x < 0)
		throw std::runtime_error("late");
	return x + 1;
}
TAIL_CALL(traced_to_wait, traced_wait);
TRACED long traced_outer(long x)
{
	long y = traced_to_wait(x);
	CLOBBER;
	return y + 1;
}
static void blocked()
{
	expect(traced_outer(1) == 4, "the value of a call that outlasts its traces");
	tally(3, 3, 0);
}
static void blocked_throw()
{
	try {
		traced_outer(-5);
		expect(false, "no exception");
	} catch (const std::runtime_error &) {
	}
	tally(3, 0, 3);
}

// ---- many, from one place ----

TRACED long traced_depth(long n)
{
	long below = n ? traced_depth(n - 1) : 0;
	CLOBBER;
	return below + 1;
}
static void deep()
{
	expect(traced_depth(TIMES) == TIMES + 1, "deep recursion");
	expect(traced_depth(TIMES) == TIMES + 1, "deep recursion again");
	tally(2 * (TIMES + 1), 2 * (TIMES + 1), 0);
}

TRACED long traced_throw(long x)
{
	CLOBBER;
	throw x;
}
static void thrown()
{
	for (long i = 0; i < TIMES; i++) {
		try {
			traced_throw(i);
			expect(false, "no exception");
		} catch (long x) {
			expect(x == i, "the exception's value");
		}
		tally(1, 0, 1);
	}
	expect(traced_depth(100) == 101, "recursion after exceptions");
	tally(101, 101, 0);
}

static jmp_buf back;
TRACED void traced_jump()
{
	CLOBBER;
	longjmp(back, 1);
}
static void jumped()
{
	for (volatile long i = 0; i < TIMES; i++) {
		if (!setjmp(back)) {
			traced_jump();
			expect(false, "longjmp returned");
		}
		tally(1, 0, 1);
	}
	expect(traced_depth(100) == 101, "recursion after jumps");
	tally(101, 101, 0);
}

// ---- tail calls ----

static long frames;
static _Unwind_Reason_Code count_frame(struct _Unwind_Context *, void *)
{
	return ++frames < 1000 ? _URC_NO_REASON : _URC_NORMAL_STOP;
}
TRACED long traced_end(long x)
{
	frames = 0;
	_Unwind_Backtrace(count_frame, nullptr);
	expect(frames < 100, "a walk over the stack has no end");
	if (x < 0)
		throw std::runtime_error("tail");
	return x;
}
TAIL_CALL(traced_tail, traced_end);
TAIL_CALL(traced_tail_tail, traced_tail);
static void tails()
{
	for (long i = 0; i < 100; i++) {
		expect(traced_tail_tail(i) == i + 2, "tail calls");
		try {
			traced_tail_tail(-5);
			expect(false, "no exception");
		} catch (const std::runtime_error &) {
		}
		tally(6, 3, 3);
	}
}

// Two functions that call each other so, STEPS times.
TRACED long traced_step(long x)
{
	frames = 0;
	_Unwind_Backtrace(count_frame, nullptr);
	expect(frames < 100, "a walk over the stack has no end");
	throw x;
}
/* clang-format off */
asm(".text\n.globl traced_even\n.type traced_even,@function\ntraced_even:\n.cfi_startproc\n\tlea -1(%rdi),%rdi\n\ttest %rdi,%rdi\n\t{disp32} jg traced_odd\n\t{disp32} jmp traced_step\n"
    ".cfi_endproc\n.size traced_even,.-traced_even\n"
    ".globl traced_odd\n.type traced_odd,@function\ntraced_odd:\n.cfi_startproc\n\tlea -1(%rdi),%rdi\n\ttest %rdi,%rdi\n\t{disp32} jg traced_even\n\t{disp32} jmp traced_step\n"
    ".cfi_endproc\n.size traced_odd,.-traced_odd\n");
/* clang-format on */
TRACED long traced_even(long x);
static void chain()
{
	for (long i = 0; i < 100; i++) {
		try {
			traced_even(STEPS);
			expect(false, "no exception");
		} catch (long x) {
			expect(x == 0, "the chain's value");
		}
		tally(STEPS + 1, 0, STEPS + 1);
	}
}

TRACED long traced_leap(long)
{
	CLOBBER;
	longjmp(back, 1);
}
TAIL_CALL(traced_to_leap, traced_leap);
static void leaps()
{
	for (volatile long i = 0; i < 100; i++) {
		if (!setjmp(back)) {
			traced_to_leap(0);
			expect(false, "longjmp returned");
		}
		tally(2, 0, 2);
	}
}

// ---- calls of several threads without a pause, until there is a line: traces come and go
// meanwhile ----

static std::atomic<bool> enough;
TRACED long traced_leaf(long x)
{
	CLOBBER;
	return x + 1;
}
TAIL_CALL(traced_to_leaf, traced_leaf);
TRACED long traced_pair(long x)
{
	long y = traced_leaf(x);
	CLOBBER;
	return y + traced_to_leaf(x);
}
static void call_on(long *calls)
{
	for (; !enough; ++*calls)
		expect(traced_pair(*calls) == 2 * *calls + 3,
		       "the value of a call while traces come and go");
}
static void throw_on(long *calls)
{
	for (; !enough; ++*calls) {
		try {
			traced_throw(*calls);
			expect(false, "no exception");
		} catch (long x) {
			expect(x == *calls, "the exception's value while traces come and go");
		}
		expect(traced_depth(9) == 10, "recursion while traces come and go");
	}
}
static void go_on(void (*run)(long *))
{
	long calls[3] = {};
	std::thread threads[3];

	for (int i = 0; i < 3; i++)
		threads[i] = std::thread(run, &calls[i]);
	wait_for_line("inside");
	enough = true;
	for (int i = 0; i < 3; i++) {
		threads[i].join();
		expect(calls[i] > 100, "a thread got nowhere");
	}
	for (long n : calls)
		run == call_on ? tally(4 * n, 4 * n, 0) : tally(11 * n, 10 * n, n);
}
static void calling()
{
	go_on(call_on);
}
static void throwing()
{
	go_on(throw_on);
}

// ---- a call that a forked child inherits, and ends when a trace of its parent has gone ----

static bool is_child;
TRACED long traced_fork(long x)
{
	pid_t child = fork();
	int status = 0;

	is_child = child == 0;
	if (is_child) {
		expect(traced_pair(x) == 2 * x + 3, "calls of a child");
		wait_for_line("inside");
	} else
		expect(child > 0 && waitpid(child, &status, 0) == child && status == 0,
		       "how the child ended");
	return x + 1;
}
TAIL_CALL(traced_to_fork, traced_fork);
static void forked()
{
	expect(traced_to_fork(1) == 3, "the value of a call that began before a fork");
	if (is_child)
		_exit(0);
	tally(2, 2, 0);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)();
	} scenarios[] = { { "blocked", blocked }, { "blocked_throw", blocked_throw },
			  { "deep", deep },       { "thrown", thrown },
			  { "jumped", jumped },   { "tails", tails },
			  { "chain", chain },     { "leaps", leaps },
			  { "calling", calling }, { "throwing", throwing },
			  { "forked", forked } };

	for (auto &scenario : scenarios) {
		if (argc != 2 || strcmp(scenario.name, argv[1]))
			continue;
		wait_for_line("ready");
		scenario.run();
		printf("%ld %ld %ld\n", entries, returns, exceptions);
		return 0;
	}
	return 2;
}
