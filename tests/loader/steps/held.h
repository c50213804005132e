/* SPDX-License-Identifier: MIT */
/*
 * A program that the test holds by ptrace: a fork of it, whose threads go through calls of all
 * kinds. What the loader does is run in the test, not in a keeper, and where it lets the process go
 * the threads take as many steps as the test says (by --wrap of the loader's own functions).
 */
#ifndef FAY_TESTS_LOADER_HELD_H
#define FAY_TESTS_LOADER_HELD_H

#include "../harness.h"

#include <stdbool.h>
#include <sys/user.h>

#define THREADS 2

extern pid_t victim, threads[THREADS];
extern struct fay_target *target;
/* Steps that the threads take when the loader lets them go: so many, or, if `random_steps`, at most
 * so many. */
extern unsigned steps_at_release[THREADS], random_steps;
/* From the second time on they go on to the end of their round, too. */
extern bool go_on_at_release;
extern unsigned releases;

/* What the threads do. */
unsigned long steps_leaf(unsigned long x);
unsigned long steps_called_last(unsigned long x);
unsigned long steps_ends_in_call(unsigned long x);
unsigned long steps_again(unsigned long n);
unsigned long steps_all(unsigned long x);

void on_signal(int number); /* the program's handler of SIGUSR1 */

int hold_victim(void **state);
int end_victim(void **state);
/* Both threads go through all their calls, to the end and once more, and stop between two rounds.
 */
void go_on(void);
void step(pid_t thread);
void steps(pid_t thread, unsigned count);
struct user_regs_struct registers_of(pid_t thread);
/* The thread has stopped, as it should have. */
void assert_stopped(pid_t thread, int status);
unsigned random_below(unsigned limit);

#endif
