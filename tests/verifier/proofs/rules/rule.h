/* SPDX-License-Identifier: MIT */
/*
 * What the statements about the checker's rules are written with.
 *
 * A rule is a function: it makes inputs, calls a function of the checker and says with prove() what
 * then holds. prove_rules runs it once for all inputs; run_rules runs it with many.
 *
 * Every statement is about one assignment of integers to variables, `ghost`, of which nothing is
 * known but that the state admits it: so it holds for all of them.
 */
#ifndef FAY_PROOFS_RULE_H
#define FAY_PROOFS_RULE_H

#include "verifier/checker/machine/form.h"
#include "verifier/checker/machine/machine.h"

typedef _BitInt(136) big; /* any form's integer, and sums of some */

uint64_t any64(const char *name);
wide any128(const char *name);
/* Every number below n in turn. */
unsigned choose(const char *name, unsigned n);
#ifdef FAY_RUN_RULES
/* A branch: the compiler moves divisions by zero before calls that do not return. */
_Noreturn void leave(void);
#define assume(condition) ((condition) ? (void)0 : leave())
#else
void assume(bool condition);
#endif
void prove(bool condition, const char *what);
/* From here on `by` is called for `function`, but not by `by` itself. */
void replace(const char *function, const char *by);
/*
 * Products and quotients of two unknowns are unknowns, too: equal for equal factors, and quotient
 * and rest make the number. Ordered: the solver is also told that products keep the order of their
 * factors where they do not wrap, and if `defined` when that is so. No more is needed where a rule
 * rests on nothing else; all the bits of a wide product are beyond the solver.
 */
void opaque_products(void);
void ordered_products(bool defined);
/* Whether a * b does not wrap; the solver knows only products of which this was assumed, or all
 * that evidently do not, if `defined`. */
bool product_fits(wide a, wide b);
/* Whether this is a proof, not a run with numbers. */
bool symbolic(void);
/* Whether it is a run with small numbers. */
bool tiny(void);
/* Whether to take all of many cases that are alike. */
bool thorough(void);

/* RULE: proved, and run with numbers. RUN_RULE: too hard for the solver; only run. */
#ifdef FAY_RUN_RULES
struct rule {
	const char *name;
	void (*run)(void);
};
#define RULE(name)                                                                                 \
	void rule_##name(void);                                                                    \
	static const struct rule entry_##name                                                      \
		__attribute__((used, section("rules"))) = { #name, rule_##name };                  \
	void rule_##name(void)
#define RUN_RULE(name) RULE(name)
#else
#define RULE(name)                                                                                 \
	void rule_##name(void);                                                                    \
	void rule_##name(void)
#define RUN_RULE(name)                                                                             \
	void run_##name(void);                                                                     \
	void run_##name(void)
#endif

enum { GHOSTS = 8 };
extern wide ghost[GHOSTS]; /* by id; that of 0 is 0 */
extern struct machine m;   /* the state in hand */

/* ---- common.c ---- */
/* A state of n variables, ids 1 to n, that admits `ghost`. */
void any_state(unsigned n);
/* A fact that admits `ghost`, of the variables whose bits are set in `of`, at most two. */
void any_fact(unsigned of);
/* Of the variables whose bits are set in `of`, at most two. */
struct form any_form(unsigned of);
/* What contract_range_add is to be about: range.c. */
void chain_form(const struct form *f);
/* Of these variables, some. */
struct form choose_form(unsigned n);
struct value any_value(unsigned of); /* a number */
/* a * b, where the compiler cannot know of what: what is assumed of it stays. */
wide multiplied(wide a, wide b);
/* A factor's word times a variable's: never wraps (rule product_word). */
wide product(int64_t k, wide x);
/* The integer that a form is. */
big integer(const struct form *f);
int64_t factor(const struct form *f, uint32_t id);
/* The low bits. */
uint64_t low(uint64_t n, unsigned bits);
int64_t signed_low(uint64_t n, unsigned bits);
/* Whether the value is this number. */
bool describes(const struct value *v, uint64_t n);
/* A number that the value describes. */
uint64_t number_of(const struct value *v);
/* Whether the state admits `ghost`. */
bool admits(void);
/* Variables whose words have come to be read the other way: what they then are. */
void admit_readings(void);
unsigned choose_bits(void);  /* 1 to 64 */
unsigned choose_width(void); /* 8, 16, 32, 64 */
/* A number of a state of one variable, as a term of its own; and what is known of callees of it. */
struct value any_number(unsigned bits, uint64_t *n);
void replace_reads(void);
/* A state of one variable with that; and with a second number or a constant. */
struct value any_operand(unsigned bits, uint64_t *n);
struct pair {
	struct value a, b;
	uint64_t x, y; /* what they are */
};
struct pair any_pair(unsigned bits);
/* The bits of a number, read as signed or not. */
big reading(uint64_t n, unsigned bits, bool sign);
/*
 * That n is what the result says, at a width: the variable that was made for it, if one was, can be
 * such (n itself, or a or b), and what is noted of it is so.
 */
void prove_result(const struct value *r, uint64_t n, unsigned bits, wide a, wide b);
bool within(const struct range *r, big n);
/* The same, where -UNKNOWN and UNKNOWN are no bounds. */
bool bounds(const struct range *r, big n);

#endif
