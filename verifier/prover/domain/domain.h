/* SPDX-License-Identifier: MIT */
/*
 * The abstract values of the analysis: sets of 64-bit numbers (struct fay_scalar) and what a
 * register or stack slot may hold (struct fay_value).
 *
 * A scalar is the intersection of four views of one 64-bit word, each of them kept as tight as the
 * others allow: known bits (the "tnum" of the Linux eBPF verifier; Vishwanathan et al., CGO 2022),
 * an unsigned interval, a signed interval, and a congruence of the signed reading (Granger 1989).
 * Every operation over-approximates: the result contains the concrete result for every choice of
 * concrete operands. A function that can find a set empty says so by returning false.
 */
#ifndef FAY_VERIFIER_DOMAIN_H
#define FAY_VERIFIER_DOMAIN_H

#include <stdbool.h>
#include <stdint.h>

struct fay_scalar {
	uint64_t value;   /* bits known to be one */
	uint64_t unknown; /* bits not known; value & unknown == 0 */
	uint64_t umin, umax;
	int64_t smin, smax;
	/* 1..2^31: the signed reading is remainder modulo this; 1 says nothing */
	uint64_t modulus;
	uint64_t remainder; /* < modulus */
};

static inline struct fay_scalar fay_scalar_top(void)
{
	return (struct fay_scalar){ .unknown = UINT64_MAX,
				    .umax = UINT64_MAX,
				    .smin = INT64_MIN,
				    .smax = INT64_MAX,
				    .modulus = 1 };
}

static inline struct fay_scalar fay_scalar_const(uint64_t value)
{
	return (struct fay_scalar){ .value = value,
				    .umin = value,
				    .umax = value,
				    .smin = (int64_t)value,
				    .smax = (int64_t)value,
				    .modulus = 1 };
}

struct fay_scalar fay_scalar_range(uint64_t umin, uint64_t umax);
struct fay_scalar fay_scalar_srange(int64_t smin, int64_t smax);
static inline bool fay_scalar_is_const(const struct fay_scalar *s)
{
	return s->umin == s->umax;
}

/* Makes the views agree. False if no number is left. */
bool fay_scalar_normalise(struct fay_scalar *s);
bool fay_scalar_meet(struct fay_scalar *to, const struct fay_scalar *with);
struct fay_scalar fay_scalar_join(const struct fay_scalar *a, const struct fay_scalar *b);
bool fay_scalar_includes(const struct fay_scalar *outer, const struct fay_scalar *inner);
bool fay_scalar_contains(const struct fay_scalar *s, uint64_t number);
static inline bool fay_scalar_equal(const struct fay_scalar *a, const struct fay_scalar *b)
{
	return a->value == b->value && a->unknown == b->unknown && a->umin == b->umin &&
	       a->umax == b->umax && a->smin == b->smin && a->smax == b->smax &&
	       a->modulus == b->modulus && a->remainder == b->remainder;
}

/* The sorted candidates that widening may stop at. */
struct fay_thresholds {
	uint32_t count;
	int64_t values[512]; /* ascending as signed numbers */
};
/* `joined` includes `old`; the result includes `joined`, and a chain of widenings is finite
 * (fixpoint_find.c also counts them). */
struct fay_scalar fay_scalar_widen(const struct fay_scalar *old, const struct fay_scalar *joined,
				   const struct fay_thresholds *thresholds);

/* The low `width` bits (8, 16, 32, 64), zero- or sign-extended. */
struct fay_scalar fay_scalar_zext(const struct fay_scalar *s, unsigned width);
struct fay_scalar fay_scalar_sext(const struct fay_scalar *s, unsigned width);

/* 64-bit modular arithmetic. */
struct fay_scalar fay_scalar_add(const struct fay_scalar *a, const struct fay_scalar *b);
struct fay_scalar fay_scalar_sub(const struct fay_scalar *a, const struct fay_scalar *b);
struct fay_scalar fay_scalar_and(const struct fay_scalar *a, const struct fay_scalar *b);
struct fay_scalar fay_scalar_or(const struct fay_scalar *a, const struct fay_scalar *b);
struct fay_scalar fay_scalar_xor(const struct fay_scalar *a, const struct fay_scalar *b);
struct fay_scalar fay_scalar_mul(const struct fay_scalar *a, const struct fay_scalar *b);
/* unsigned, upper 64 bits */
struct fay_scalar fay_scalar_mul_high(const struct fay_scalar *a, const struct fay_scalar *b);
/* Shift counts are already masked: count within [0, 63]. */
struct fay_scalar fay_scalar_shl(const struct fay_scalar *a, const struct fay_scalar *count);
struct fay_scalar fay_scalar_shr(const struct fay_scalar *a, const struct fay_scalar *count);
struct fay_scalar fay_scalar_sar(const struct fay_scalar *a, const struct fay_scalar *count);
/* Unsigned division; the divisor's umin is at least 1. */
struct fay_scalar fay_scalar_udiv(const struct fay_scalar *a, const struct fay_scalar *b);
struct fay_scalar fay_scalar_urem(const struct fay_scalar *a, const struct fay_scalar *b);

/* Assume x < y and so on; both are refined. False: impossible. */
bool fay_scalar_assume_ult(struct fay_scalar *x, struct fay_scalar *y);
bool fay_scalar_assume_ule(struct fay_scalar *x, struct fay_scalar *y);
bool fay_scalar_assume_slt(struct fay_scalar *x, struct fay_scalar *y);
bool fay_scalar_assume_sle(struct fay_scalar *x, struct fay_scalar *y);
bool fay_scalar_assume_eq(struct fay_scalar *x, struct fay_scalar *y);
bool fay_scalar_assume_ne(struct fay_scalar *x, struct fay_scalar *y);

/* "[0, 15]" and the like, for messages. Returns buffer. */
const char *fay_scalar_print(const struct fay_scalar *s, char *buffer, unsigned size);

enum fay_region {
	REGION_EVENT,
	REGION_LOCAL,
	REGION_GLOBAL,
	REGION_RODATA,
	REGION_STACK,
	REGION_COUNT
};

enum fay_kind {
	/* must not be read; tag: the register whose value at entry it still is, or TAG_NONE */
	KIND_UNINIT,
	KIND_SAVED, /* the value at entry of callee-saved register `tag` */
	KIND_SCALAR,
	/* to region `tag`, at offset `s` from its start (STACK: from rsp at entry); modulo 2^64 */
	KIND_POINTER,
	/* the address of helper `tag`, from its slot: only moved, kept whole on the own stack, and
	 * called */
	KIND_HELPER,
	KIND_RETURN, /* the return address that CALL pushed for call context `s` */
	KIND_MIXED,  /* a value of differing kinds, depending on the path */
	KIND_UPPER,  /* stack only: the upper half of the 8-byte value in the slot below */
};
#define TAG_NONE 0xff

struct fay_value {
	struct fay_scalar s;
	uint64_t delta;   /* equals the unknown named `id`, plus delta (modulo 2^64) */
	uint32_t id;      /* 0: no name; meaningful within one state only */
	uint32_t origin;  /* ranking: 1 + location at the loop's header; 0 none */
	int64_t dlo, dhi; /* ranking: minus the origin's value there lies within */
	uint8_t kind, tag;
	uint8_t size; /* stack slots: 8 or 4 bytes */
	uint8_t init; /* bit per byte that may be read (SCALAR) */
};

#endif
