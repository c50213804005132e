// SPDX-License-Identifier: MIT
// What the scenarios of calls_target share: the tally, and the calls that many of them make.
#ifndef FAY_TESTS_CALLS_TARGET_H
#define FAY_TESTS_CALLS_TARGET_H

#include <atomic>

#define TRACED extern "C" __attribute__((noinline, noclone, used))
#define CLOBBER asm volatile("" ::: "memory")

extern std::atomic<long> entries, returns, exceptions;
extern long rounds;
// Ends the program with a message if not.
void expect(bool condition, const char *what);
void tally(long entries, long returns, long exceptions);

extern long destroyed;
struct guard {
	~guard()
	{
		destroyed++;
	}
};
// Returns n, by as many calls of itself.
TRACED long traced_depth(long n);
// Returns x, or throws std::string("odd").
TRACED long traced_throw(long x);
// Ends the program in a traced call, by exit() or execl().
TRACED void traced_end(const char *how);

// Scenarios of calls_leaving.cc
void jumps();
void signals();
void timer();
void coroutines();
void migration();
void thread_exit();
void forks();
void processes();
void threads();
void waiting();

#endif
