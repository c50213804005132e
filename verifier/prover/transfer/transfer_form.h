/* SPDX-License-Identifier: MIT */
/* What the two files on forms share: transfer_form.c (forms), transfer_remainder.c (operations). */
#ifndef FAY_VERIFIER_TRANSFER_FORM_H
#define FAY_VERIFIER_TRANSFER_FORM_H

#include "transfer.h"

typedef __int128 wide;

#define FRACTION 80u
#define UP_MOST 16u /* of struct fay_form: up */
#define WAYS 4u     /* forms of one word that are looked at, and the word itself as a root */

/* a factor's or a bound's magnitude */
static const wide one = (wide)1 << FRACTION, most = (wide)1 << 120;
static const int64_t rest_most = (int64_t)1 << 40;

static inline bool plain(const struct fay_value *v)
{
	return v->kind == KIND_SCALAR && v->id;
}

static inline bool is_number(const struct fay_value *v)
{
	return v->kind == KIND_SCALAR && fay_scalar_is_const(&v->s);
}

static inline struct fay_form of_root(const struct fay_value *v)
{
	return (struct fay_form){ .root = v->id,
				  .root_delta = v->delta,
				  .least = v->s.umin,
				  .most = v->s.umax,
				  .factor = one,
				  .bits = 64,
				  .exact = true };
}

/* The fraction is cut off f, which was divided by 2^by. E becomes all that is not certain of it,
 * unless the E there was matters about as much. */
void fay_form_cut_off(struct fay_analysis *an, struct fay_form *f, unsigned by);
/* f := f / 2^by, with its fraction. False: the factor has too many binary places. */
bool fay_form_divide(struct fay_form *f, unsigned by);
/* What f's integer is a multiple of: of its own word, if it is that. */
void fay_form_find_base(struct fay_form *f);
/* f without E: whatever E is. */
void fay_form_forget_error(struct fay_form *f);
/* f with a smaller `up`. */
bool fay_form_lower(struct fay_form *f, unsigned up);
/* f := f * n. */
bool fay_form_multiply(struct fay_form *f, wide n);
/* The forms of v; split: also as what was shifted out beside a root. */
unsigned fay_form_own(const struct fay_analysis *an, const struct fay_value *v, bool split,
		      struct fay_form f[WAYS]);
/* One form a word and root is enough. */
void fay_form_remember(struct fay_analysis *an, const struct fay_form *f);
/* J := J * n. */
bool fay_form_scale(struct fay_form *f, wide n);
/*
 * The result r, of which all bits from `room` on are zero, has form f; f->exact if it is known to
 * be I, `positive` if I is known not to be negative. It is I if it agrees with I in all bits that
 * it has, and I has no more.
 */
void fay_form_settle(struct fay_analysis *an, struct fay_form *f, unsigned room, bool positive,
		     struct fay_value *r);
/* The same for a result that is cut to `width` bits. */
void fay_form_settle_low(struct fay_analysis *an, struct fay_form *f, unsigned width, bool positive,
			 struct fay_value *r);
/* What an operation on v alone may start from: its forms, and v as a root, if they say no more than
 * of which root it was shifted down. */
unsigned fay_form_sources(const struct fay_analysis *an, const struct fay_value *v,
			  struct fay_form f[WAYS]);
/* f := f / n. False: it is not n times a form. */
bool fay_form_unscale(struct fay_form *f, int64_t n);

#endif
