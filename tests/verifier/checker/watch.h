/* SPDX-License-Identifier: MIT */
/*
 * The small checker's machine beside the interpreter, for random programs: what test_machine.c and
 * machine_joins.c share. At every instruction the machine must lie within the checker's state: each
 * register and place of the stack in its range; every variable one number from where it is made to
 * the end, in its range; facts and definitions as they say; no flag undefined that counts as
 * defined; no condition that holds said to be impossible, and what is learned of it so.
 */
#ifndef FAY_TESTS_WATCH_H
#define FAY_TESTS_WATCH_H

#include "fay/event.h"
#include "tests/verifier/sound/soundness_programs.h"
#include "verifier/checker/machine/form.h"
#include "verifier/checker/walk.h"
#include "verifier/explain/exec.h"

#define WATCH_IDS 65536u
#define WATCH_BASE(region) ((uint64_t)((region) + 1) << 40)

struct watch {
	struct walk walk; /* its m is the state in hand */
	struct fay_machine cpu;
	uint8_t event[sizeof(struct fay_event)], local[LOCAL_SIZE], global[GLOBAL_SIZE];
	uint8_t stack[4096];
	uint64_t initial[16];
	struct {
		bool known;
		uint64_t number; /* modulo 2^64 */
	} variable[WATCH_IDS];
	char wrong[256];
	struct {
		unsigned long instructions, conditions, variables, facts, defs, stopped, sized;
		unsigned long lists, again, back;
	} seen;
};
extern struct watch watch;

/* Always false; the first is kept in watch.wrong. */
bool watch_bad(const char *what, uint64_t a, uint64_t b);
bool watch_within(struct range r, wide n);
/* The variable's integer, as it is read now. */
wide watch_integer(const struct var *v);
/* Whether a condition holds of the interpreter's flags. */
bool watch_condition(unsigned cc);
bool watch_state(void);
bool watch_conditions(void);

/* ---- machine_joins.c ---- */

/* For each run; `heads`: of each byte of .text, whether a jump leads back to it. */
void joins_begin(const uint8_t *heads, bool loops_only);
/* Here: joins and heads are made or entered again, and what is accepted must hold. */
bool joins_try(void);

/* ---- sized_programs.c ---- */

/* Program `number`, with accesses to region LOCAL, whose size is passed in rcx. */
void sized_program(FILE *f, unsigned number);

#endif
