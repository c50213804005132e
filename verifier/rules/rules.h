/* SPDX-License-Identifier: MIT */
/*
 * The lowest room: what every refusal is made of. Rules and names, all from tables (fay/rules.def
 * is the one list of rules; the public names are declared in fay/verify.h); the refusal itself; and
 * the two budgets of a verification, memory and time.
 */
#ifndef FAY_VERIFIER_RULES_H
#define FAY_VERIFIER_RULES_H

#include "fay/verify.h"

/* Bump allocator that owns everything a verdict points to. Allocation failure and the cap
 * (ARENA_MAX) return NULL. */
struct fay_arena;
struct fay_arena *fay_arena_create(size_t max_bytes);
void fay_arena_destroy(struct fay_arena *arena);
void *fay_arena_alloc(struct fay_arena *arena, size_t size); /* zeroed, 16-byte aligned */
char *fay_arena_printf(struct fay_arena *arena, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The clock that deadlines are told by. */
uint64_t fay_monotonic_ns(void);

/* Where and why something was refused; the analysis and the parser both return it by value. rule
 * NONE means fine. */
struct fay_refusal {
	enum fay_rule rule;
	enum fay_outcome outcome;
	uint64_t address;    /* virtual address in .text, 0 if not about code */
	const char *what;    /* in the arena */
	const char *missing; /* in the arena, or NULL */
};

/* The usual outcome of a rule, from fay/rules.def. */
enum fay_outcome fay_rule_outcome(enum fay_rule rule);

/* A refusal with the rule's usual outcome; `format` becomes `what`. */
struct fay_refusal fay_refuse(struct fay_arena *arena, enum fay_rule rule, uint64_t address,
			      const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Operand names for messages: fay_gpr_name(FAY_RAX, 32) is "eax"; "?" out of range. */
const char *fay_gpr_name(unsigned gpr, unsigned width);

#endif
