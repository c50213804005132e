/* SPDX-License-Identifier: MIT */
/*
 * Quotients and remainders by a constant, which compilers compute by multiplication: x % 10 is x -
 * 10 * (x * 0xcccccccd >> 35).
 *
 * A form says of a word that it is, modulo 2^bits, an integer I with
 *
 *	factor * X + error * E + low <= I <= factor * X + error * E + high (factor, error, low,
 *	  high: fractions with FRACTION bits, exact)
 *
 * where X, a root, is the unsigned reading of another value. The upper half of x * M is M/2^64 * X
 * less a fraction; a shift to the right divides and takes away another fraction; sums, differences
 * and products by constants are what they are, for words as for integers, modulo 2^bits. In x - 10
 * * q the factor is nearly 0, so I lies within a few numbers: if they fit in the word, it is one of
 * them. Nothing is recognised, and no multiplier is believed to be right: with a wrong one the
 * factor is not small enough, and the bounds are those that follow.
 *
 * Where the word is divided by 2^k before the product (x / 14 is (x >> 1) * 0x92492493 >> 34), the
 * bounds above are those of a remainder by 14 plus a bit of x. So x is also known as 2 * x' + e, e
 * in [0, 1], with x' as the root, and 14 * q as 2 * (7 * q): forms are 2^up * J + rest, J the
 * integer that factor, error, low and high bound, and rest one within bounds of its own. In x - 14
 * * q J is x' - 7 * q, in [0, 6], and the whole in [0, 13].
 *
 * E, in [0, 1], is the fraction that was cut off a word, as a part of the most that could be. It
 * has a name, because that word may come in twice: 7 * q is 8 * q - q, and x / 7 is ((x - q >> 1) +
 * q) >> 2, q being x * 0x24924925 >> 32. One such fraction is followed at a time; any other widens
 * low and high.
 *
 * The integer part is certain only where the word is I itself (`exact`): a shift to the right, an
 * `and` or the upper half of a product need that, or all bits. Forms are of names (struct
 * fay_value), of the block in hand only: a name is one number for as long as its state lives, and
 * the next block has other names.
 */
#include "transfer_form.h"

struct bounds {
	wide low, high;
};

/* factor * x, rounded down to an integer; and the rest. */
static wide product(wide factor, uint64_t x, wide *rest)
{
	unsigned __int128 lower = (unsigned __int128)(uint64_t)factor * x;
	wide upper = (factor >> 64) * (wide)x + (wide)(lower >> 64); /* in units of 2^-16 */

	*rest = (upper & 0xffff) << 64 | (wide)(uint64_t)lower;
	return upper >> 16;
}

void fay_form_forget_error(struct fay_form *f)
{
	f->low += f->error < 0 ? f->error : 0;
	f->high += f->error > 0 ? f->error : 0;
	f->error = 0;
	f->error_of = 0;
}

/* The integers that f, which has no E, allows. */
static struct bounds integers(const struct fay_form *f)
{
	wide rest_low, rest_high;
	wide low = product(f->factor, f->factor < 0 ? f->most : f->least, &rest_low) +
		   (f->low >> FRACTION);
	wide high = product(f->factor, f->factor < 0 ? f->least : f->most, &rest_high) +
		    (f->high >> FRACTION);

	rest_low += f->low & (one - 1);
	rest_high += f->high & (one - 1);
	low += (rest_low >> FRACTION) + ((rest_low & (one - 1)) != 0);
	high += rest_high >> FRACTION;
	return (struct bounds){ low * ((wide)1 << f->up) + f->rest_low,
				high * ((wide)1 << f->up) + f->rest_high };
}

unsigned fay_form_own(const struct fay_analysis *an, const struct fay_value *v, bool split,
		      struct fay_form f[WAYS])
{
	unsigned count = 0;

	for (uint32_t i = 0; plain(v) && i < an->form_count && i < FAY_FORMS && count + 1 < WAYS;
	     i++)
		if (an->forms[i].id == v->id && an->forms[i].delta == v->delta &&
		    (split || !an->forms[i].split))
			f[count++] = an->forms[i];
	return count;
}

unsigned fay_form_sources(const struct fay_analysis *an, const struct fay_value *v,
			  struct fay_form f[WAYS])
{
	unsigned count = fay_form_own(an, v, false, f);
	bool only_shifted = true;

	for (unsigned i = 0; i < count; i++)
		only_shifted &= f[i].shifted;
	if (only_shifted && plain(v) && !is_number(v))
		f[count++] = of_root(v);
	return count;
}

static bool small(wide x)
{
	return x > -most && x < most;
}

void fay_form_find_base(struct fay_form *f)
{
	if (f->multiple || !f->exact)
		return;
	f->multiple = 1;
	f->base = f->id ? f->id : f->root;
	f->base_delta = f->id ? f->delta : f->root_delta;
}

bool fay_form_scale(struct fay_form *f, wide n)
{
	wide low, high;

	if (__builtin_mul_overflow(f->factor, n, &f->factor) ||
	    __builtin_mul_overflow(f->error, n, &f->error) ||
	    __builtin_mul_overflow(f->low, n, &low) || __builtin_mul_overflow(f->high, n, &high))
		return false;
	f->low = n < 0 ? high : low;
	f->high = n < 0 ? low : high;
	return small(f->factor) && small(f->error) && small(f->low) && small(f->high);
}

bool fay_form_lower(struct fay_form *f, unsigned up)
{
	wide by = (wide)1 << (f->up - up);

	f->up = (uint8_t)up;
	return fay_form_scale(f, by);
}

static bool take_out(wide *x, wide n)
{
	bool whole = *x % n == 0;

	*x /= n;
	return whole;
}

bool fay_form_unscale(struct fay_form *f, int64_t n)
{
	wide low = f->rest_low, high = f->rest_high;
	bool whole = n > 0 && fay_form_lower(f, 0) && take_out(&f->factor, n) &&
		     take_out(&f->error, n) && take_out(&f->low, n) && take_out(&f->high, n) &&
		     take_out(&low, n) && take_out(&high, n);

	f->rest_low = (int64_t)low;
	f->rest_high = (int64_t)high;
	return whole;
}

/* f without `up` and rest. */
static bool flatten(struct fay_form *f)
{
	if (!fay_form_lower(f, 0))
		return false;
	f->low += f->rest_low * one;
	f->high += f->rest_high * one;
	f->rest_low = f->rest_high = 0;
	return small(f->low) && small(f->high);
}

bool fay_form_multiply(struct fay_form *f, wide n)
{
	wide low = f->rest_low * n, high = f->rest_high * n;

	if (low <= -rest_most || low >= rest_most || high <= -rest_most || high >= rest_most)
		return false;
	fay_form_find_base(f);
	if (__builtin_mul_overflow(f->multiple, n, &f->multiple))
		f->multiple = 0;
	f->rest_low = (int64_t)(n < 0 ? high : low);
	f->rest_high = (int64_t)(n < 0 ? low : high);
	for (; n && !(n & 1) && f->up < UP_MOST; n /= 2) {
		f->up++;
		f->bits = (uint8_t)(f->bits + (f->bits < 64));
	}
	return fay_form_scale(f, n);
}

void fay_form_remember(struct fay_analysis *an, const struct fay_form *f)
{
	for (uint32_t i = 0; i < an->form_count && i < FAY_FORMS; i++) {
		const struct fay_form *old = &an->forms[i];

		if (old->id == f->id && old->delta == f->delta && old->root == f->root &&
		    old->root_delta == f->root_delta && old->split == f->split)
			return;
	}
	an->forms[an->form_count++ % FAY_FORMS] = *f;
}

/* What r learns of f, whose bounds are b. */
static void learn(const struct fay_form *f, struct bounds b, unsigned room, struct fay_value *r)
{
	struct fay_scalar s = r->s, range;

	if (f->exact)
		range = fay_scalar_range((uint64_t)b.low, b.high > (wide)mask_of(room)
								  ? mask_of(room)
								  : (uint64_t)b.high);
	else if (room == 64 && f->bits == 64 && b.low >= INT64_MIN && b.high <= INT64_MAX)
		range = fay_scalar_srange((int64_t)b.low, (int64_t)b.high);
	else
		return;
	if (fay_scalar_meet(&s, &range))
		r->s = s;
}

void fay_form_settle(struct fay_analysis *an, struct fay_form *f, unsigned room, bool positive,
		     struct fay_value *r)
{
	struct fay_form whole = *f;
	struct bounds b;

	if (!plain(r) || f->least > f->most || !small(f->factor) || !small(f->error) ||
	    !small(f->low) || !small(f->high) || f->rest_low <= -rest_most ||
	    f->rest_high >= rest_most)
		return;
	fay_form_forget_error(&whole);
	b = integers(&whole);
	if ((f->exact || positive) && b.low < 0)
		b.low = 0;
	if (b.low > b.high)
		return; /* nothing is there to be described */
	f->exact |= f->bits >= room && b.low >= 0 && b.high <= (wide)mask_of(room);
	learn(f, b, room, r);
	if (f->exact)
		f->bits = 64;
	f->id = r->id;
	f->delta = r->delta;
	fay_form_remember(an, f);
}

void fay_form_settle_low(struct fay_analysis *an, struct fay_form *f, unsigned width, bool positive,
			 struct fay_value *r)
{
	f->exact = false;
	if (f->bits > width)
		f->bits = (uint8_t)width;
	fay_form_settle(an, f, width, positive, r);
}

void fay_form_cut_off(struct fay_analysis *an, struct fay_form *f, unsigned by)
{
	wide cut = one - (one >> by), error = f->error < 0 ? -f->error : f->error;

	f->low -= cut;
	if (2 * error >= cut)
		return;
	fay_form_forget_error(f);
	f->error = f->low - f->high;
	f->error_of = ++an->error_count; /* no other E of this block is called so */
	f->low = f->high;
}

bool fay_form_divide(struct fay_form *f, unsigned by)
{
	if (by > 64 || !flatten(f) || (f->factor & (((wide)1 << by) - 1)))
		return false;
	if (f->error & (((wide)1 << by) - 1))
		fay_form_forget_error(f);
	f->factor >>= by;
	f->error >>= by;
	f->low >>= by;
	f->high = -(-f->high >> by);
	return true;
}
