// SPDX-License-Identifier: MIT
// `stepped_target MODE`: a signal at each instruction of a watched call in turn. traced_outer()
// calls traced_inner() with the CPU's trap flag set, so a SIGTRAP comes before each
// of its instructions, those of the trampolines and of the runtime included; the handler counts
// them. At the first one in the first run, the second in the second, and so on until a
// run has no more, it calls traced_catcher(), which calls traced_leaver(), and that one
//
//     throw         throws to the handler
// throw-again the same, within traced_around(); afterwards an exception passes a call whose return
// address lies where that of traced_leaver() was
//     throw-caught  throws to traced_catcher(), which returns
//     jump          jumps to the handler
//     jump-caught   jumps into traced_catcher(), which returns
//     return        returns, as traced_catcher() does
//     switch        goes on, on a stack of its own, when traced_outer() has returned
//
// Modes full-return and full-unwind: before each run nearly all the room for watched calls is taken
// by calls that a longjmp left. The handler's calls, some deep, take the rest and ask for more,
// at every seventh instruction while traced_outer() is called and returns, or at every 97th while
// both are unwound.
//
// Ends by printing how many traced calls began, returned, and were left by unwinding: "ENTRIES
// RETURNS EXCEPTIONS".
#include <alloca.h>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

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
	fprintf(stderr, "stepped_target %s: %s, interrupted at instruction %ld\n", mode, what,
		interrupted_at);
	_exit(70);
}

static bool is(const char *name)
{
	return !strcmp(mode, name);
}

static bool is_full()
{
	return !strncmp(mode, "full-", 5);
}

// The first trap comes behind the instruction behind popf.
static inline __attribute__((always_inline)) void single_step(bool on)
{
	const unsigned long trap_flag = 0x100;
	if (on)
		asm volatile("lea -128(%%rsp), %%rsp; pushf; or %0, (%%rsp); popf; lea 128(%%rsp), "
			     "%%rsp" ::"r"(trap_flag)
			     : "memory", "cc");
	else
		asm volatile("lea -128(%%rsp), %%rsp; pushf; and %0, (%%rsp); popf; lea "
			     "128(%%rsp), %%rsp" ::"r"(~trap_flag)
			     : "memory", "cc");
}

// Called before each frame is left: what the unwinder does from the first frame to the one with the
// setjmp is stepped through.
static jmp_buf bottom;
static uintptr_t bottom_frame;
static _Unwind_Reason_Code stop(int, _Unwind_Action, _Unwind_Exception_Class,
				struct _Unwind_Exception *, struct _Unwind_Context *context, void *)
{
	single_step(false);
	if (_Unwind_GetCFA(context) >= bottom_frame)
		longjmp(bottom, 1);
	single_step(true);
	return _URC_NO_REASON;
}

static void unwind()
{
	static struct _Unwind_Exception exception;
	memset(&exception, 0, sizeof(exception));
	single_step(false);
	_Unwind_ForcedUnwind(&exception, stop, NULL);
	expect(false, "the unwinding ended");
}

TRACED long traced_inner(long x)
{
	CLOBBER;
	if (is("full-unwind"))
		unwind();
	return x + 1;
}

TRACED long traced_outer(long x)
{
	const long y = traced_inner(x);
	CLOBBER;
	return y * 2;
}

static uintptr_t leaver_slot; // where its return address was
TRACED long traced_leaver(long x)
{
	leaver_slot = (uintptr_t)__builtin_dwarf_cfa() - 8;
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

TRACED long traced_climb(long height)
{
	const long y = height ? traced_climb(height - 1) : 0;
	CLOBBER;
	return y + 1;
}

// Of the room for 4,096 (docs/internals/dispatcher.md) all but what traced_outer(), its callee and
// traced_climb() take together.
static const long FILLING = 4084, HEIGHT = 16;
static jmp_buf surface;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winfinite-recursion" // it ends by longjmp
TRACED long traced_descend(long depth)
{
	if (depth == 1)
		longjmp(surface, 1);
	const long y = traced_descend(depth - 1);
	CLOBBER;
	return y + 1;
}

#pragma GCC diagnostic pop

static void fill()
{
	if (!setjmp(surface))
		traced_descend(FILLING);
}

static void interrupt()
{
	if (is_full()) {
		expect(traced_climb(HEIGHT) == HEIGHT + 1, "a wrong depth in the handler");
	} else if (is("throw") || is("throw-again")) {
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

// A run in which traced_outer() itself makes room has too many.
static const long STEPS_MAX = 5000;

static void handler(int, siginfo_t *, void *frame)
{
	if (++steps == interrupted_at)
		interrupt();
	if (steps >= STEPS_MAX)
		((ucontext_t *)frame)->uc_mcontext.gregs[REG_EFL] &= ~0x100;
}

static __attribute__((noinline)) long call_outer(long number)
{
	bottom_frame = (uintptr_t)__builtin_frame_address(0);
	if (setjmp(bottom))
		return (number + 1) * 2;
	single_step(true);
	return traced_outer(number);
}

TRACED long traced_thrower(long x)
{
	CLOBBER;
	throw x;
}

static uintptr_t reach_end, below_slot, gap;
TRACED long traced_below(long x)
{
	below_slot = (uintptr_t)__builtin_dwarf_cfa() - 8;
	gap = reach_end - below_slot;
	const long y = traced_thrower(x);
	CLOBBER;
	return y + 1;
}

// Calls traced_below() with its return address at `slot`, once it has learnt, with 0, how far below
// the room that it takes that comes to lie.
TRACED long traced_reach(uintptr_t slot)
{
	const uintptr_t frame = (uintptr_t)__builtin_dwarf_cfa(),
			room = slot ? frame - gap - slot : 16;
	reach_end = frame - room;
	((volatile char *)alloca(room))[0] = 0;
	const long y = traced_below(7);
	CLOBBER;
	return y + 1;
}

static void reach(uintptr_t slot)
{
	bool caught = false;
	try {
		traced_reach(slot);
	} catch (long) {
		caught = true;
	}
	expect(caught && (!slot || below_slot == slot), "the exception afterwards");
}

TRACED long traced_around(long number, uintptr_t slot)
{
	if (slot)
		reach(slot);
	const long value = slot ? 0 : call_outer(number);
	CLOBBER;
	return value;
}

static void step_through(long number)
{
	if (is_full())
		fill();
	steps = 0;
	const long value = is("throw-again") ? traced_around(number, 0) : call_outer(number);
	single_step(false);
	expect(value == (number + 1) * 2, "a wrong value");
	if (is("throw-again") && steps >= interrupted_at)
		traced_around(0, leaver_slot);
	if (is("switch") && steps >= interrupted_at)
		swapcontext(&interrupted, &coroutine);
}

// Each instruction; prints the tally.
static void step_all()
{
	if (is("throw-again"))
		reach(0);
	do {
		interrupted_at++;
		step_through(interrupted_at);
	} while (steps >= interrupted_at);
	const long interrupts = interrupted_at - 1, again = is("throw-again");
	const long left = strstr(mode, "-caught")     ? 1
			  : is("throw") || is("jump") ? 2
			  : again                     ? 5
						      : 0;
	const long entries =
		(2 + again) * interrupted_at + (2 + 4 * again) * interrupts + 3 * again;
	const long exceptions = left * interrupts + 3 * again;
	printf("%ld %ld %ld\n", entries, entries - exceptions, exceptions);
}

static void step_full()
{
	const long stride = is("full-unwind") ? 97 : 7;
	long runs = 1, interrupts = 0;
	step_through(0); // what is done once only, such as finding unwind information
	for (interrupted_at = 1; interrupted_at == 1 || steps >= interrupted_at;
	     interrupted_at += stride) {
		step_through(interrupted_at);
		runs++;
		interrupts += steps >= interrupted_at;
	}
	const long climbs = interrupts * (HEIGHT + 1), thrown = is("full-unwind") ? 2 * runs : 0,
		   left = runs * FILLING + thrown;
	const long entries = runs * (FILLING + 2) + climbs;
	printf("%ld %ld %ld\n", entries, entries - left, left);
}

// Signal frames are put at multiples of 64: at how many places on the stack the calls in handlers
// are
// depends on where it begins, which differs from run to run.
static void __attribute__((noinline)) on_aligned_stack(void (*step)())
{
	alignas(64) char aligned[64];

	asm volatile("" : : "r"(aligned) : "memory");
	step();
	asm volatile("" : : "r"(aligned) : "memory");
}

int main(int argc, char **argv)
{
	struct sigaction action = {};
	mode = argc > 1 ? argv[1] : "return";
	action.sa_sigaction = handler;
	action.sa_flags = SA_SIGINFO;
	sigaction(SIGTRAP, &action, NULL);
	on_aligned_stack(is_full() ? step_full : step_all);
	return 0;
}
