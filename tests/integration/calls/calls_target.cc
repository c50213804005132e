// SPDX-License-Identifier: MIT
// What calls can do other than return, one scenario a run. All functions named traced_* are traced
// by the test (calls.sh). Each scenario checks for itself
// that the program works as it would untraced, and ends by printing how many of these calls began,
// returned, and were left by unwinding:
//
//     calls_target SCENARIO [ROUNDS [wait]]  ->  "ENTRIES RETURNS EXCEPTIONS"
#include <alloca.h>
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#define TRACED extern "C" __attribute__((noinline, noclone, used))
#define CLOBBER asm volatile("" ::: "memory")

static std::atomic<long> entries, returns, exceptions;
static long rounds = 100;

static void expect(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "calls_target: %s\n", what);
	_exit(70);
}

static void tally(long e, long r, long x)
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

static long destroyed;
struct guard {
	~guard()
	{
		destroyed++;
	}
};
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

// ---- leaving without the unwinder ----

static jmp_buf back;
TRACED long traced_jump(long x)
{
	CLOBBER;
	if (x == 0)
		longjmp(back, 1);
	return x;
}
TRACED long traced_jump_outer(long x)
{
	long y = traced_jump(x);
	CLOBBER;
	return y + 1;
}
TRACED long traced_setter(long x)
{
	if (setjmp(back))
		return -1;
	return traced_jump_outer(x);
}
static void jumps()
{
	for (volatile long i = 0; i < rounds; i++) {
		expect(traced_setter(i % 3) == (i % 3 ? i % 3 + 1 : -1), "longjmp");
		tally(3, i % 3 ? 3 : 1, i % 3 ? 0 : 2);
		if (!setjmp(back)) {
			traced_jump_outer(0);
			expect(false, "longjmp returned");
		}
		tally(2, 0, 2);
	}
}

static sigjmp_buf handler_back;
static volatile sig_atomic_t handled;
TRACED long traced_handler_leaf(long x)
{
	CLOBBER;
	return x + 1;
}
TRACED void traced_handler(int number)
{
	(void)number;
	handled++;
	if (traced_handler_leaf(3) != 4)
		_exit(71);
}
TRACED void traced_handler_jump(int number)
{
	(void)number;
	handled++;
	siglongjmp(handler_back, 1);
}
// Synchronous ones: exact counts.
static void signals()
{
	static char stack[65536];
	stack_t alternate = {};
	alternate.ss_sp = stack;
	alternate.ss_size = sizeof(stack);
	struct sigaction action = {};
	action.sa_handler = traced_handler;
	sigaction(SIGUSR1, &action, nullptr);
	sigaltstack(&alternate, nullptr);
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR2, &action, nullptr);
	action.sa_handler = traced_handler_jump;
	action.sa_flags = SA_ONSTACK | SA_NODEFER;
	sigaction(SIGHUP, &action, nullptr);
	for (long i = 0; i < rounds; i++) {
		raise(SIGUSR1);
		raise(SIGUSR2);
		tally(4, 4, 0);
		if (!sigsetjmp(handler_back, 1))
			raise(SIGHUP);
		tally(1, 0, 1);
		expect(traced_handler_leaf(i) == i + 1, "after siglongjmp");
		tally(1, 1, 0);
	}
	expect(handled == 3 * rounds, "a signal was lost");
}
// A timer interrupts everywhere, trampolines included; what is counted is said by the program, what
// is lost by the dispatcher.
static void timer()
{
	struct sigaction action = {};
	struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = {};
	action.sa_handler = traced_handler;
	sigaction(SIGALRM, &action, nullptr);
	handled = 0;
	setitimer(ITIMER_REAL, &often, nullptr);
	for (long i = 0; i < rounds * 10000; i++) {
		expect(traced_handler_leaf(i) == i + 1, "interrupted");
		if (i % 16 == 0) {
			long value = 0;
			try {
				value = traced_throw(i / 16);
			} catch (const std::string &) {
				value = i / 16;
				exceptions++;
				returns--;
			}
			expect(value == i / 16, "interrupted exception");
			tally(1, 1, 0);
		}
		tally(1, 1, 0);
	}
	setitimer(ITIMER_REAL, &never, nullptr);
	tally(2 * handled, 2 * handled, 0);
}

// ---- several stacks a thread ----

static ucontext_t main_context, context[8];
static char *context_stack[8];
static int current;
static const int SWITCHES = 50;
TRACED long traced_switch(long x)
{
	swapcontext(&context[current], &main_context);
	CLOBBER;
	return x;
}
TRACED long traced_coroutine(long x)
{
	long sum = 0;
	for (int i = 0; i < SWITCHES; i++)
		sum += traced_switch(x);
	CLOBBER;
	return sum;
}
static void coroutine_main(int which)
{
	expect(traced_coroutine(which) == (long)which * SWITCHES, "a coroutine's value");
	expect(which == current, "which coroutine");
	swapcontext(&context[which], &main_context);
}
static void make_coroutines()
{
	for (int i = 0; i < 8; i++) {
		context_stack[i] = (char *)mmap(nullptr, 65536, PROT_READ | PROT_WRITE,
						MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		getcontext(&context[i]);
		context[i].uc_stack.ss_sp = context_stack[i];
		context[i].uc_stack.ss_size = 65536;
		makecontext(&context[i], (void (*)())coroutine_main, 1, i);
	}
}
TRACED void traced_resume(int which)
{
	current = which;
	swapcontext(&main_context, &context[which]);
	CLOBBER;
}
static void coroutines()
{
	for (long round = 0; round < 5; round++) {
		make_coroutines();
		for (int k = 0; k <= SWITCHES; k++)
			for (int i = 0; i < 8; i++)
				traced_resume((int)(i * 3 + round) % 8);
		tally(8 * (SWITCHES + 1) + 8 + 8 * SWITCHES, 8 * (SWITCHES + 1) + 8 + 8 * SWITCHES,
		      0);
		for (int i = 0; i < 8; i++)
			munmap(context_stack[i], 65536);
	}
}
// Each switch goes on in another thread.
static void *resume_all(void *)
{
	for (int i = 0; i < 8; i++)
		traced_resume(i);
	return nullptr;
}
static void migration()
{
	make_coroutines();
	for (int k = 0; k <= SWITCHES; k++) {
		pthread_t thread;
		pthread_create(&thread, nullptr, resume_all, nullptr);
		pthread_join(thread, nullptr);
	}
	tally(8 * (SWITCHES + 1) + 8 + 8 * SWITCHES, 8 * (SWITCHES + 1) + 8 + 8 * SWITCHES, 0);
}

// ---- threads and processes ----

TRACED void *traced_exit_inner(void *x)
{
	guard g;
	CLOBBER;
	if (x)
		pthread_exit(x);
	pause();
	return x;
}
TRACED void *traced_exit_outer(void *x)
{
	guard g;
	void *y = traced_exit_inner(x);
	CLOBBER;
	return y;
}
static void *exit_start(void *x)
{
	guard g;
	void *y = traced_exit_outer(x);
	CLOBBER;
	return y;
}
static void thread_exit()
{
	destroyed = 0;
	for (long i = 0; i < rounds; i++) {
		pthread_t thread;
		void *value = nullptr;
		pthread_create(&thread, nullptr, exit_start, i % 2 ? (void *)&thread : nullptr);
		if (i % 2 == 0) {
			usleep(1000);
			pthread_cancel(thread);
		}
		pthread_join(thread, &value);
		expect(value == (i % 2 ? (void *)&thread : PTHREAD_CANCELED), "a thread's value");
		tally(2, 0, 2);
	}
	expect(destroyed == 3 * rounds, "a destructor did not run at a thread's exit");
}

TRACED long traced_fork(long x)
{
	pid_t child = fork();
	int status;
	CLOBBER;
	if (child == 0)
		return x + 1;
	waitpid(child, &status, 0);
	expect(WIFEXITED(status) && WEXITSTATUS(status) == 7, "the child's way back");
	return x;
}
TRACED long traced_fork_outer(long x)
{
	long y = traced_fork(x);
	CLOBBER;
	if (y == x + 1) {
		if (x % 2)
			throw std::string("child");
		traced_depth(30);
	}
	return y;
}
static void forks()
{
	for (long i = 0; i < rounds / 5; i++) {
		long value = 0;
		try {
			value = traced_fork_outer(i);
		} catch (const std::string &s) {
			_exit(i % 2 && s == "child" ? 7 : 8);
		}
		if (value == i + 1)
			_exit(i % 2 ? 8 : 7);
		expect(value == i, "the parent's way back");
		tally(2, 2, 0);
	}
}
TRACED int traced_vfork(const char *command)
{
	pid_t child = vfork();
	int status;
	if (child == 0) {
		traced_depth(3);
		execl("/bin/sh", "sh", "-c", command, nullptr);
		_exit(1);
	}
	waitpid(child, &status, 0);
	CLOBBER;
	return WEXITSTATUS(status);
}
TRACED int traced_system(const char *command)
{
	int status = system(command);
	CLOBBER;
	return WEXITSTATUS(status);
}
static void processes()
{
	for (long i = 0; i < rounds / 10; i++) {
		expect(traced_vfork("exit 5") == 5, "vfork");
		expect(traced_system("exit 6") == 6, "system");
		tally(6, 6, 0);
	}
}
TRACED void traced_end(const char *how)
{
	CLOBBER;
	printf("%ld %ld %ld\n", entries.load() + 1, returns.load(), exceptions.load());
	fflush(stdout);
	if (!strcmp(how, "exit"))
		exit(0);
	execl("/bin/true", "true", nullptr);
}

static void *worker(void *)
{
	expect(traced_depth(15) == 15, "a thread's recursion");
	for (long i = 0; i < rounds * 100; i++) {
		long value;
		try {
			value = traced_throw(i);
		} catch (const std::string &) {
			value = -1;
		}
		expect(value == (i % 2 ? -1 : i), "a thread's exception");
		tally(1, i % 2 ? 0 : 1, i % 2);
	}
	tally(16, 16, 0);
	return nullptr;
}
static void threads()
{
	pthread_t thread[8];
	for (auto &t : thread)
		pthread_create(&t, nullptr, worker, nullptr);
	for (auto &t : thread)
		pthread_join(t, nullptr);
}

// Stays inside traced calls until it is told to go on: the session ends meanwhile.
TRACED long traced_wait(long x)
{
	char line[16];
	printf("waiting\n");
	fflush(stdout);
	expect(fgets(line, sizeof(line), stdin) != nullptr, "end of input");
	if (x % 2)
		throw std::string("late");
	return x;
}
TRACED long traced_wait_outer(long x)
{
	long y = traced_wait(x);
	CLOBBER;
	return y + 1;
}
static void waiting()
{
	expect(traced_wait_outer(2) == 3, "a return after the session's end");
	try {
		traced_wait_outer(3);
		expect(false, "no exception");
	} catch (const std::string &) {
	}
	printf("good\n");
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
