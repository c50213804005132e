// SPDX-License-Identifier: MIT
// `stepped_target MODE`: a signal at each instruction of a watched call in turn. traced_outer() calls traced_inner() with the CPU's trap flag set, so a SIGTRAP comes before each
// of its instructions, those of the trampolines and of the runtime included; the handler counts them. At the first one in the first run, the second in the second, and so on until a
// run has no more, it calls traced_catcher(), which calls traced_leaver(), and that one
//
//     throw         throws to the handler
//     throw-caught  throws to traced_catcher(), which returns
//     jump          jumps to the handler
//     jump-caught   jumps into traced_catcher(), which returns
//     return        returns, as traced_catcher() does
//     switch        goes on, on a stack of its own, when traced_outer() has returned
//
// Ends by printing how many traced calls began, returned, and were left by unwinding: "ENTRIES RETURNS EXCEPTIONS".
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <unistd.h>

#define TRACED extern "C" __attribute__((noinline, noclone, used))
#define CLOBBER asm volatile("" ::: "memory")

static const char *mode;
static volatile long steps, interrupted_at;
static jmp_buf target;
static ucontext_t interrupted, coroutine;
static char coroutine_stack[256 << 10];

static void expect(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "stepped_target %s: %s, interrupted at instruction %ld\n", mode, what, interrupted_at);
	_exit(70);
}

static bool is(const char *name)
{
	return !strcmp(mode, name);
}

TRACED long traced_inner(long x)
{
	CLOBBER;
	return x + 1;
}

TRACED long traced_outer(long x)
{
	const long y = traced_inner(x);
	CLOBBER;
	return y * 2;
}

TRACED long traced_leaver(long x)
{
	CLOBBER;
	if (!strncmp(mode, "throw", 5))
		throw x;
	if (!strncmp(mode, "jump", 4))
		longjmp(target, 1);
	if (is("switch"))
		swapcontext(&coroutine, &interrupted);
	return x * 3;
}

TRACED long traced_catcher(long x)
{
	if (is("throw-caught")) {
		try {
			return traced_leaver(x);
		} catch (long caught) {
			return caught * 3;
		}
	}
	if (is("jump-caught") && setjmp(target))
		return x * 3;
	const long y = traced_leaver(x);
	CLOBBER;
	return y;
}

static void call_catcher()
{
	expect(traced_catcher(7) == 21, "a wrong value in the handler");
}

static void interrupt()
{
	if (is("throw")) {
		try {
			call_catcher();
		} catch (long caught) {
			expect(caught == 7, "a wrong exception");
		}
	} else if (is("jump")) {
		if (!setjmp(target))
			call_catcher();
	} else if (is("switch")) {
		getcontext(&coroutine);
		coroutine.uc_stack.ss_sp = coroutine_stack;
		coroutine.uc_stack.ss_size = sizeof(coroutine_stack);
		coroutine.uc_link = &interrupted;
		makecontext(&coroutine, call_catcher, 0);
		swapcontext(&interrupted, &coroutine);
	} else {
		call_catcher();
	}
}

static void handler(int)
{
	if (++steps == interrupted_at)
		interrupt();
}

// The first trap comes behind the instruction behind popf.
static inline __attribute__((always_inline)) void single_step(bool on)
{
	const unsigned long trap_flag = 0x100;
	if (on)
		asm volatile("lea -128(%%rsp), %%rsp; pushf; or %0, (%%rsp); popf; lea 128(%%rsp), %%rsp" ::"r"(trap_flag) : "memory", "cc");
	else
		asm volatile("lea -128(%%rsp), %%rsp; pushf; and %0, (%%rsp); popf; lea 128(%%rsp), %%rsp" ::"r"(~trap_flag) : "memory", "cc");
}

static void step_through(long number)
{
	steps = 0;
	single_step(true);
	const long value = traced_outer(number);
	single_step(false);
	expect(value == (number + 1) * 2, "a wrong value");
	if (is("switch") && steps >= interrupted_at)
		swapcontext(&interrupted, &coroutine);
}

int main(int argc, char **argv)
{
	struct sigaction action = {};
	mode = argc > 1 ? argv[1] : "return";
	action.sa_handler = handler;
	sigaction(SIGTRAP, &action, NULL);
	do {
		interrupted_at++;
		step_through(interrupted_at);
	} while (steps >= interrupted_at);
	const long interrupts = interrupted_at - 1, entries = 2 * interrupted_at + 2 * interrupts;
	const long left = strstr(mode, "-caught") ? 1 : is("throw") || is("jump") ? 2 : 0;
	const long exceptions = left * interrupts;
	printf("%ld %ld %ld\n", entries, entries - exceptions, exceptions);
	return 0;
}
