/* SPDX-License-Identifier: MIT */
/*
 * What the checker knows of a machine at one place of a probe.
 *
 * Every number is a form, c + k0 * v0 + k1 * v1, of at most two variables. A variable stands for
 * one integer that is the same wherever it is named, and has a range. A value of `bits` bits is the
 * form's integer modulo 2^bits, so additions, subtractions and products by constants are exact at
 * any width, whether they wrap or not. Two places that hold forms of one variable are tied: what a
 * branch tells of one is known of the other.
 *
 * Coefficients are words, read as signed: a form's integer is what these signed numbers give over
 * the integers, and that is the value modulo 2^64 whatever wrapped on the way.
 */
#ifndef FAY_CHECKER_STATE_H
#define FAY_CHECKER_STATE_H

#include <string.h>

#include "verifier/checker/subject/subject.h"
#include "verifier/isa/insn.h"

typedef __int128 wide; /* any sum of two products of words that are kept below fits */

struct form {
	int64_t c, k[2];
	uint32_t v[2]; /* ids, v[0] < v[1]; unused ones come last, with id and factor 0 */
};

struct range {
	wide lo, hi; /* lo <= hi */
};

enum kind {
	/* not written by the probe; `tag`: that register's value at entry, or NO_TAG */
	KIND_NOTHING,
	KIND_NUMBER,
	KIND_POINTER, /* region `tag` at offset `f`, modulo 2^64 */
	KIND_SAVED,   /* the value at entry of register `tag`, which must be restored */
	KIND_HELPER,  /* the address of helper `tag` */
	KIND_RETURN,  /* the return address f.c */
};
/* An interface's regions come first, by their numbers; here those of probes. */
enum region {
	REGION_EVENT,
	REGION_LOCAL,
	REGION_GLOBAL,
	REGION_RODATA = FAY_INTERFACE_REGIONS,
	REGION_STACK
};
#define NO_TAG 0xffu

struct value {
	struct form f;
	uint8_t kind, tag;
	uint8_t init; /* NUMBER: bit per byte that depends on what the probe wrote */
	uint8_t bits; /* NUMBER: modulo 2^bits, 1 to 64 */
};

#define PIN_SIZES 0x7fffff00u

/* Range of a variable: [lo, hi], signed words if `negative`, else unsigned ones. */
struct var {
	uint32_t id;
	/* pin: 1 + the head of a loop that counts by it; PIN_SIZES + a region whose size it is, as
	 * long as the probe runs; 0 none */
	uint32_t negative : 1, pin : 31;
	uint64_t lo, hi;
};

/* lo <= k0 * v0 + k1 * v1 <= hi over the integers; k0 > 0, no common factor. */
struct fact {
	struct form f; /* c = 0 */
	int64_t lo, hi;
};

/* Bytes of the stack from `fixed` up to `end` (or from `end` up to `fixed`) were written. */
struct fill {
	struct form end;
	int32_t fixed;
	bool down;
};

/* A value on the stack, at an offset from rsp at entry; or of region 0, where it is 0 or more. */
struct slot {
	struct value v;
	int32_t at;
	uint8_t size; /* 1, 2, 4, 8 */
};

/* What the flags are the flags of: a - b at `bits`. */
struct flags {
	struct value a, b;
	uint8_t bits;
	uint8_t covered;   /* FLAG_*: those that are these flags; else nothing is known of them */
	uint8_t undefined; /* FLAG_*: must not be read */
	bool inverted;     /* the carry is that of an addition: the complement */
};

enum {
	STACK_MOST = 8192, /* bytes */
	SLOTS = 160,
	VARS = 224,
	FACTS = 12,
	FILLS = 4,
	DEFS = 12,
};

struct state {
	int32_t depth; /* bytes that rsp is below its value at entry */
	uint16_t slots, vars, facts, fills;
	struct value reg[16];
	struct flags flags;
	uint32_t vector[16]; /* bit per byte that the probe has written */
	/* lists: what is behind their counts means nothing */
	uint8_t written[STACK_MOST /
			8]; /* bit per byte -1 - i, of `depth`, that holds a number's */
	struct fact fact[FACTS];
	struct fill fill[FILLS];
	struct slot slot[SLOTS]; /* by `at` */
	struct var var[VARS];    /* by `id` */
};

/* What a variable that the node in hand made is of others, beside its range. */
enum def_kind {
	DEF_FLOOR, /* floor(factor * f / 2^shift), f not wrapping */
	DEF_SIGN,  /* -1 where f, modulo 2^shift, is negative as a signed word, else 0 */
	DEF_ONES,  /* the bits of factor are set */
	DEF_PART,  /* f with some of its bits cleared */
	DEF_TABLE, /* the four bytes of read-only data at f; `sign`: extended with their sign */
};
struct def {
	uint32_t id;
	uint8_t kind, shift;
	bool sign;
	uint64_t factor;
	struct form f;
};

/* What the machines of a walk have together. */
struct shared {
	uint32_t next_id;
	/* what was known of variables before something was assumed, to be taken back */
	uint16_t vars, facts;
	struct fact fact[FACTS];
	struct var var[VARS];
};

/* A state, with what lasts for one node only. */
struct machine {
	struct state s;
	const struct check_subject *subject;
	const struct fay_policy *policy;
	struct fay_probe_facts *facts; /* gathered */
	struct check_refusal refusal;  /* the first */
	bool lenient; /* registers may be read of which not all bytes were written */
	bool refine;  /* branches tell something: not where they are mispredicted */
	struct shared *shared;
	uint64_t extra;  /* elements that rep instructions moved */
	uint64_t helped; /* instructions of helpers */
	uint32_t turn;   /* which entry of a full list is overwritten next */
	uint32_t defs;
	struct def def[DEFS];
};

/* Always false. */
bool check_refuse(struct machine *m, enum fay_rule rule, const char *what);

static inline struct form form_number(int64_t c)
{
	return (struct form){ .c = c };
}
static inline struct value value_number(uint64_t n)
{
	return (struct value){ form_number((int64_t)n), KIND_NUMBER, 0, 0xff, 64 };
}
static inline struct value value_nothing(void)
{
	return (struct value){ .kind = KIND_NOTHING, .tag = NO_TAG };
}
/* Neither what it is, nor that it is what a register held at entry. */
static inline bool value_unknown(const struct value *v)
{
	return v->kind == KIND_NOTHING && v->tag == NO_TAG;
}
static inline struct range var_range(const struct var *v)
{
	if (v->negative)
		return (struct range){ (int64_t)v->lo, (int64_t)v->hi };
	return (struct range){ v->lo, v->hi };
}
static inline bool form_equal(const struct form *f, const struct form *g)
{
	return f->c == g->c && f->v[0] == g->v[0] && f->v[1] == g->v[1] && f->k[0] == g->k[0] &&
	       f->k[1] == g->k[1];
}

/* ---- form.c ---- */
/* A number of which only [lo, hi] is known, as a variable of its own; modulo 2^bits. */
struct value value_fresh(struct machine *m, wide lo, wide hi, unsigned bits);
struct var *var_find(struct state *s, uint32_t id);
/* The variable number `which` of those with this pin, or NULL. */
struct var *var_pinned(struct state *s, uint64_t pin, uint64_t which);
/* f + k * g, modulo 2^64; over the integers. False: more than two variables; the latter wraps. */
bool form_add(struct form *f, const struct form *g, int64_t k);
bool form_plus(struct form *f, const struct form *g, int64_t k);
void form_scale(struct form *f, uint64_t by);
/* Least and greatest of the form's integer, by the ranges, facts and definitions. */
struct range form_range(struct machine *m, const struct form *f);
/* Learns lo <= f <= hi. False: that cannot be. */
bool form_narrow(struct machine *m, const struct form *f, wide lo, wide hi);
/* Keeps lo <= f <= hi, f of two variables and without a number; nothing else is concluded. */
void form_fact(struct machine *m, const struct form *f, wide lo, wide hi);
/* The same modulo 2^bits, with small coefficients. */
void form_reduce(struct form *f, unsigned bits);
/* Learns that f modulo 2^bits, read from `lo` on, is at most `hi`; hi - lo < 2^bits. */
bool form_window(struct machine *m, const struct form *f, unsigned bits, wide lo, wide hi);
/*
 * The low `bits` bits of a number as an integer, read as signed or not: its range. If *exact it is
 * *f + *shift. *f is congruent to the number modulo 2^bits if the value has as many bits.
 */
struct range value_read(struct machine *m, const struct value *v, unsigned bits, bool sign,
			struct form *f, wide *shift, bool *exact);
/* The same where the integer is a form, which is what is asked; false: it is not. */
bool value_form(struct machine *m, const struct value *v, unsigned bits, bool sign, struct form *f);
/* A form that is congruent to the number modulo 2^bits; false: none is known. */
bool value_congruent(struct machine *m, const struct value *v, unsigned bits, struct form *f);
struct range value_range(struct machine *m, const struct value *v, unsigned bits, bool sign);
/* Drops variables that nothing names. */
void check_collect(struct machine *m);
/* What is assumed from here on can be taken back, once. */
void assume_begin(struct machine *m);
void assume_undo(struct machine *m);
void check_define(struct machine *m, const struct value *v, struct def def);
/* Of this kind, of the variable that the form is; NULL: none. */
const struct def *check_definition(const struct machine *m, const struct form *f,
				   enum def_kind kind);

#endif
