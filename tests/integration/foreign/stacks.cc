// SPDX-License-Identifier: MIT
// Stacks other than a thread's own, and ends of threads and processes: foreign_stacks.sh.
#include <execinfo.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <ucontext.h>

#include "foreign.h"

TRACED long traced_leaf(long x)
{
	CLOBBER;
	if (x < 0)
		throw std::runtime_error("negative");
	return x + 1;
}
TRACED long traced_caller(long x)
{
	long y = traced_leaf(x);
	CLOBBER;
	return y + 1;
}

// ---- ucontext: switched in the midst of traced calls; exceptions within a coroutine ----

static ucontext_t scheduler, coroutine[3];
static char stacks[3][128 << 10] __attribute__((aligned(64)));
static long passed;
TRACED void traced_yield(int which)
{
	swapcontext(&coroutine[which], &scheduler);
	CLOBBER;
}
TRACED void traced_body(int which)
{
	for (int i = 0; i < 5; i++) {
		passed += traced_caller(i);
		traced_yield(which);
		try {
			traced_caller(-1);
		} catch (const std::runtime_error &) {
			traced_yield(which);
			passed += 100;
		}
	}
	CLOBBER;
}
static long contexts()
{
	passed = 0;
	for (int c = 0; c < 3; c++) {
		getcontext(&coroutine[c]);
		coroutine[c].uc_stack.ss_sp = stacks[c];
		coroutine[c].uc_stack.ss_size = sizeof(stacks[c]);
		coroutine[c].uc_link = &scheduler;
		makecontext(&coroutine[c], (void (*)())traced_body, 1, c);
	}
	for (int i = 0; i < 11; i++)
		for (int c = 0; c < 3; c++)
			swapcontext(&scheduler, &coroutine[c]);
	tally(3 * (1 + 5 * 6), 3 * (1 + 5 * 4), 3 * 5 * 2);
	return passed;
}

// ---- processes and threads of clone, with stacks of their own, of which one shares memory ----

TRACED int traced_child(void *argument)
{
	return (int)traced_caller((long)argument) & 63;
}
static long clones()
{
	long sum = 0;

	for (int flags : { SIGCHLD, CLONE_VM | SIGCHLD, CLONE_VM | CLONE_VFORK | SIGCHLD }) {
		int status = 0;
		pid_t child = clone(traced_child, stacks[0] + sizeof(stacks[0]), flags, (void *)7L);
		expect(child > 0 && waitpid(child, &status, 0) == child, "clone");
		sum += WEXITSTATUS(status);
	}
	return sum;
}

static long forks()
{
	long sum = 0;

	for (int i = 0; i < 3; i++) {
		int status = 0;
		pid_t child = fork();
		if (child == 0)
			_exit((int)traced_caller(i) + 10);
		expect(child > 0 && waitpid(child, &status, 0) == child, "fork");
		sum += WEXITSTATUS(status);
	}
	return sum;
}
TRACED pid_t traced_vfork(const char *file)
{
	pid_t child = vfork();
	if (child == 0) {
		execl(file, file, (char *)0);
		_exit(3);
	}
	return child;
}
static long vforks()
{
	long sum = 0;

	for (const char *file : { "/bin/true", "/bin/false", "/nonexistent" }) {
		int status = 0;
		pid_t child = traced_vfork(file);
		expect(child > 0 && waitpid(child, &status, 0) == child, "vfork");
		sum = 10 * sum + WEXITSTATUS(status);
	}
	return sum;
}

// ---- threads that are cancelled, or exit, in traced calls with something to clean up ----

static long cleaned;
struct cleanup {
	~cleanup()
	{
		__atomic_fetch_add(&cleaned, 1, __ATOMIC_RELAXED);
	}
};
TRACED void traced_pause()
{
	cleanup cleanup;
	pause();
	CLOBBER;
}
TRACED void traced_spin(int *ready)
{
	traced_caller(1);
	__atomic_store_n(ready, 1, __ATOMIC_RELEASE); /* it is cancelled from here on */
	for (;;)
		CLOBBER;
}
TRACED void traced_leave()
{
	cleanup cleanup;
	pthread_exit((void *)5);
}
static void *paused(void *ready)
{
	__atomic_store_n((int *)ready, 1, __ATOMIC_RELEASE);
	traced_pause();
	return NULL;
}
static void *spinning(void *ready)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	traced_spin((int *)ready);
	return NULL;
}
static void *leaving(void *ready)
{
	__atomic_store_n((int *)ready, 1, __ATOMIC_RELEASE);
	traced_leave();
	return NULL;
}
static long cancelled()
{
	long sum = 0;

	cleaned = 0;
	for (auto body : { paused, spinning, leaving }) {
		pthread_t thread;
		int ready = 0;
		void *value;
		pthread_create(&thread, NULL, body, &ready);
		while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
			sched_yield();
		usleep(500);
		if (body != leaving)
			pthread_cancel(thread);
		pthread_join(thread, &value);
		sum += value == PTHREAD_CANCELED ? 1 : (long)value;
	}
	tally(5, 2, 3);
	return sum * 10 + cleaned;
}

// ---- backtrace() from within traced calls, and in a handler on another stack ----

TRACED long traced_walk(long depth)
{
	void *frames[64];
	long walked = depth ? traced_walk(depth - 1) : backtrace(frames, 64);
	CLOBBER;
	return walked;
}
static volatile long in_handler;
static void on_signal(int)
{
	in_handler = traced_walk(3) - traced_walk(0);
}
TRACED long traced_raise(long x)
{
	raise(SIGUSR1);
	CLOBBER;
	return x + in_handler;
}
static long walks()
{
	static char other[64 << 10];
	stack_t alternate = {};
	struct sigaction action = {};
	long sum = 0;

	alternate.ss_sp = other;
	alternate.ss_size = sizeof(other);
	sigaltstack(&alternate, NULL);
	action.sa_handler = on_signal;
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR1, &action, NULL);
	long lowest = traced_walk(0);
	for (long i = 0; i < 20; i++)
		sum += (traced_walk(i) - lowest) + 1000 * traced_raise(0);
	tally(1 + 210 + 20 * 6, 1 + 210 + 20 * 6, 0);
	return sum;
}

// ---- deep recursion: with -fsplit-stack through pieces ----

TRACED long traced_deep(long n)
{
	char room[1000];
	CLOBBER;
	memset(room, (int)n, sizeof(room));
	long below = n ? traced_deep(n - 1) : 0;
	CLOBBER;
	return below + room[n % 1000];
}
static long deep()
{
	long sum = 0;

	std::thread([&] {
		for (long n : { 10L, 300L, 1000L })
			sum += traced_deep(n);
	}).join();
	tally(1313, 1313, 0);
	return sum;
}

SCENARIOS({ "contexts", contexts }, { "clones", clones }, { "forks", forks }, { "vforks", vforks },
	  { "cancelled", cancelled }, { "walks", walks }, { "deep", deep })
