// SPDX-License-Identifier: MIT
// Scenarios of calls_target in which calls are left without the unwinder, or on another stack, by
// another thread or in another process than they began.
#include "calls_target.h"

#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <string>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

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
void jumps()
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
void signals()
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
void timer()
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
void coroutines()
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
void migration()
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
void thread_exit()
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
void forks()
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
void processes()
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
void threads()
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
void waiting()
{
	expect(traced_wait_outer(2) == 3, "a return after the session's end");
	try {
		traced_wait_outer(3);
		expect(false, "no exception");
	} catch (const std::string &) {
	}
	printf("good\n");
}
