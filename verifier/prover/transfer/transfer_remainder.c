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
#include "transfer.h"

typedef __int128 wide;

#define FRACTION 80u
#define UP_MOST 16u /* of struct fay_form: up */
#define WAYS 4u     /* forms of one word that are looked at, and the word itself as a root */

/* a factor's or a bound's magnitude */
static const wide one = (wide)1 << FRACTION, most = (wide)1 << 120;
static const int64_t rest_most = (int64_t)1 << 40;

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

/* f without E: whatever E is. */
static void forget_error(struct fay_form *f)
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

static bool plain(const struct fay_value *v)
{
	return v->kind == KIND_SCALAR && v->id;
}

static bool is_number(const struct fay_value *v)
{
	return v->kind == KIND_SCALAR && fay_scalar_is_const(&v->s);
}

static struct fay_form of_root(const struct fay_value *v)
{
	return (struct fay_form){ .root = v->id,
				  .root_delta = v->delta,
				  .least = v->s.umin,
				  .most = v->s.umax,
				  .factor = one,
				  .bits = 64,
				  .exact = true };
}

/* The forms of v; split: also as what was shifted out beside a root. */
static unsigned own_forms(const struct fay_analysis *an, const struct fay_value *v, bool split,
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

/* What an operation on v alone may start from: its forms, and v as a root, if they say no more than
 * of which root it was shifted down. */
static unsigned sources(const struct fay_analysis *an, const struct fay_value *v,
			struct fay_form f[WAYS])
{
	unsigned count = own_forms(an, v, false, f);
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

/* What f's integer is a multiple of: of its own word, if it is that. */
static void find_base(struct fay_form *f)
{
	if (f->multiple || !f->exact)
		return;
	f->multiple = 1;
	f->base = f->id ? f->id : f->root;
	f->base_delta = f->id ? f->delta : f->root_delta;
}

/* J := J * n. */
static bool scale(struct fay_form *f, wide n)
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

/* f with a smaller `up`. */
static bool lower(struct fay_form *f, unsigned up)
{
	wide by = (wide)1 << (f->up - up);

	f->up = (uint8_t)up;
	return scale(f, by);
}

static bool take_out(wide *x, wide n)
{
	bool whole = *x % n == 0;

	*x /= n;
	return whole;
}

/* f := f / n. False: it is not n times a form. */
static bool unscale(struct fay_form *f, int64_t n)
{
	wide low = f->rest_low, high = f->rest_high;
	bool whole = n > 0 && lower(f, 0) && take_out(&f->factor, n) && take_out(&f->error, n) &&
		     take_out(&f->low, n) && take_out(&f->high, n) && take_out(&low, n) &&
		     take_out(&high, n);

	f->rest_low = (int64_t)low;
	f->rest_high = (int64_t)high;
	return whole;
}

/* f without `up` and rest. */
static bool flatten(struct fay_form *f)
{
	if (!lower(f, 0))
		return false;
	f->low += f->rest_low * one;
	f->high += f->rest_high * one;
	f->rest_low = f->rest_high = 0;
	return small(f->low) && small(f->high);
}

/* f := f * n. */
static bool multiply(struct fay_form *f, wide n)
{
	wide low = f->rest_low * n, high = f->rest_high * n;

	if (low <= -rest_most || low >= rest_most || high <= -rest_most || high >= rest_most)
		return false;
	find_base(f);
	if (__builtin_mul_overflow(f->multiple, n, &f->multiple))
		f->multiple = 0;
	f->rest_low = (int64_t)(n < 0 ? high : low);
	f->rest_high = (int64_t)(n < 0 ? low : high);
	for (; n && !(n & 1) && f->up < UP_MOST; n /= 2) {
		f->up++;
		f->bits = (uint8_t)(f->bits + (f->bits < 64));
	}
	return scale(f, n);
}

/* One form a word and root is enough. */
static void remember(struct fay_analysis *an, const struct fay_form *f)
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

/*
 * The result r, of which all bits from `room` on are zero, has form f; f->exact if it is known to
 * be I, `positive` if I is known not to be negative. It is I if it agrees with I in all bits that
 * it has, and I has no more.
 */
static void settle(struct fay_analysis *an, struct fay_form *f, unsigned room, bool positive,
		   struct fay_value *r)
{
	struct fay_form whole = *f;
	struct bounds b;

	if (!plain(r) || f->least > f->most || !small(f->factor) || !small(f->error) ||
	    !small(f->low) || !small(f->high) || f->rest_low <= -rest_most ||
	    f->rest_high >= rest_most)
		return;
	forget_error(&whole);
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
	remember(an, f);
}

/* The same for a result that is cut to `width` bits. */
static void settle_low(struct fay_analysis *an, struct fay_form *f, unsigned width, bool positive,
		       struct fay_value *r)
{
	f->exact = false;
	if (f->bits > width)
		f->bits = (uint8_t)width;
	settle(an, f, width, positive, r);
}

/* The fraction is cut off f, which was divided by 2^by. E becomes all that is not certain of it,
 * unless the E there was matters about as much. */
static void cut_off(struct fay_analysis *an, struct fay_form *f, unsigned by)
{
	wide cut = one - (one >> by), error = f->error < 0 ? -f->error : f->error;

	f->low -= cut;
	if (2 * error >= cut)
		return;
	forget_error(f);
	f->error = f->low - f->high;
	f->error_of = ++an->error_count; /* no other E of this block is called so */
	f->low = f->high;
}

/* f := f / 2^by, with its fraction. False: the factor has too many binary places. */
static bool divide(struct fay_form *f, unsigned by)
{
	if (by > 64 || !flatten(f) || (f->factor & (((wide)1 << by) - 1)))
		return false;
	if (f->error & (((wide)1 << by) - 1))
		forget_error(f);
	f->factor >>= by;
	f->error >>= by;
	f->low >>= by;
	f->high = -(-f->high >> by);
	return true;
}

void fay_form_product_high(struct fay_analysis *an, const struct fay_value *a,
			   const struct fay_value *b, unsigned width, struct fay_value *r)
{
	const struct fay_value *x = fay_scalar_is_const(&a->s) ? b : a, *by = x == a ? b : a;
	struct fay_form f[WAYS];
	unsigned count = is_number(by) ? sources(an, x, f) : 0;

	for (unsigned i = 0; i < count; i++) {
		forget_error(&f[i]);
		/* factor * by / 2^width: what can be divided first is, so that the product fits. */
		if (!f[i].exact || !divide(&f[i], width) || !scale(&f[i], (wide)by->s.umin))
			continue;
		f[i].shifted = false;
		f[i].multiple = 0;
		cut_off(an, &f[i], width);
		settle(an, &f[i], width, false, r);
	}
}

void fay_form_product(struct fay_analysis *an, const struct fay_value *a, const struct fay_value *b,
		      unsigned width, struct fay_value *r)
{
	const struct fay_value *x = fay_scalar_is_const(&a->s) ? b : a, *by = x == a ? b : a;
	struct fay_form f[WAYS];
	unsigned count = is_number(by) && !is_number(x) ? sources(an, x, f) : 0;

	for (unsigned i = 0; i < count; i++) {
		if ((count == 1 && !f[i].id && by->s.umin <= UINT8_MAX / 2) ||
		    !multiply(&f[i], fay_scalar_sext(&by->s, width).smin))
			continue;
		f[i].shifted = false;
		settle_low(an, &f[i], width, false, r);
	}
}

/* f := f + g, or f - g, if both are multiples of one word. */
static bool add_multiples(bool minus, struct fay_form *f, const struct fay_form *g)
{
	struct fay_form k = *f;
	int64_t n;

	if (f->base != g->base || f->base_delta != g->base_delta || !f->multiple || !g->multiple ||
	    (minus ? __builtin_sub_overflow(f->multiple, g->multiple, &n)
		   : __builtin_add_overflow(f->multiple, g->multiple, &n)) ||
	    !n || !unscale(&k, f->multiple))
		return false;
	k.multiple = 1;
	if (!multiply(&k, n))
		return false;
	k.bits = f->bits < g->bits ? f->bits : g->bits;
	*f = k;
	return true;
}

/* r is f + g, or f - g, of one root. */
static void add(struct fay_analysis *an, bool minus, struct fay_form f, struct fay_form g,
		unsigned width, struct fay_value *r)
{
	bool positive = !minus && f.exact && g.exact;

	find_base(&f);
	find_base(&g);
	f.split = f.shifted = false;
	if (add_multiples(minus, &f, &g)) {
		settle_low(an, &f, width, positive, r);
		return;
	}
	f.multiple = 0;
	if (!lower(&f, f.up < g.up ? f.up : g.up) || !lower(&g, f.up))
		return;
	if (f.error && g.error && f.error_of != g.error_of)
		forget_error(&g);
	f.error_of = f.error ? f.error_of : g.error_of;
	f.error += minus ? -g.error : g.error;
	f.factor += minus ? -g.factor : g.factor;
	f.low += minus ? -g.high : g.low;
	f.high += minus ? -g.low : g.high;
	f.rest_low += minus ? -g.rest_high : g.rest_low;
	f.rest_high += minus ? -g.rest_low : g.rest_high;
	f.bits = f.bits < g.bits ? f.bits : g.bits;
	f.least = f.least > g.least ? f.least : g.least;
	f.most = f.most < g.most ? f.most : g.most;
	settle_low(an, &f, width, positive, r);
}

/* All forms of v, and v itself. */
static unsigned all_ways(const struct fay_analysis *an, const struct fay_value *v,
			 struct fay_form f[WAYS])
{
	unsigned count = own_forms(an, v, true, f);

	if (plain(v))
		f[count++] = of_root(v);
	return count;
}

/* One of the two is a number. */
static void add_number(struct fay_analysis *an, bool minus, const struct fay_value *a,
		       const struct fay_value *b, unsigned width, struct fay_value *r)
{
	const struct fay_value *x = is_number(a) ? b : a, *by = x == a ? b : a;
	int64_t number = fay_scalar_sext(&by->s, width).smin;
	struct fay_form f[WAYS];
	unsigned count = number > -rest_most && number < rest_most ? own_forms(an, x, false, f) : 0;

	for (unsigned i = 0; i < count; i++) {
		struct fay_form g = { .root = f[i].root,
				      .root_delta = f[i].root_delta,
				      .least = f[i].least,
				      .most = f[i].most,
				      .up = f[i].up,
				      .rest_low = number,
				      .rest_high = number,
				      .multiple = 1 /* of no word */,
				      .bits = 64,
				      .exact = number >= 0 };

		add(an, minus, x == a ? f[i] : g, x == a ? g : f[i], width, r);
	}
}

void fay_form_sum(struct fay_analysis *an, bool minus, const struct fay_value *a,
		  const struct fay_value *b, unsigned width, struct fay_value *r)
{
	struct fay_form f[WAYS], g[WAYS];
	unsigned fs, gs;

	if (!an->form_count)
		return;
	if (is_number(a) || is_number(b)) {
		add_number(an, minus, a, b, width, r);
		return;
	}
	fs = all_ways(an, a, f);
	gs = all_ways(an, b, g);
	for (unsigned i = 0; i < fs; i++)
		for (unsigned k = 0; k < gs; k++)
			if ((f[i].id || g[k].id) && f[i].root == g[k].root &&
			    f[i].root_delta == g[k].root_delta)
				add(an, minus, f[i], g[k], width, r);
}

void fay_form_shift_up(struct fay_analysis *an, const struct fay_value *a, unsigned by,
		       unsigned width, struct fay_value *r)
{
	struct fay_value factor = { .s = fay_scalar_const((uint64_t)1 << by), .kind = KIND_SCALAR };
	struct fay_form f[WAYS];

	if (own_forms(an, a, false, f))
		fay_form_product(an, a, &factor, width, r);
}

/* r is `width` bits of a, from bit `from` on: under the same name if the block has read that
 * before. */
static bool name_part(struct fay_analysis *an, const struct fay_value *a, unsigned from,
		      unsigned width, struct fay_value *r)
{
	for (uint32_t i = 0; i < an->narrow_count && i < FAY_NARROWS; i++) {
		const struct fay_narrow *n = &an->narrows[i];

		if (n->of == a->id && n->delta == a->delta && n->width == width &&
		    n->from == from) {
			r->id = n->id;
			return true;
		}
	}
	an->narrows[an->narrow_count++ % FAY_NARROWS] = (struct fay_narrow){
		.of = a->id, .delta = a->delta, .width = width, .from = from, .id = r->id
	};
	return false;
}

void fay_form_shift_down(struct fay_analysis *an, const struct fay_value *a, unsigned by,
			 unsigned width, struct fay_value *r)
{
	struct fay_form f[WAYS];
	unsigned count = by == 0 || by >= width || !plain(r) ? 0 : sources(an, a, f);
	bool root = count && !f[count - 1].id;

	if (!count)
		return;
	name_part(an, a, by, width - by, r);
	for (unsigned i = 0; i < count; i++) {
		if (f[i].bits < width || !divide(&f[i], by))
			continue;
		f[i].shifted |= !f[i].id;
		f[i].multiple = 0;
		cut_off(an, &f[i], by);
		if (!f[i].exact)
			/* the others would have come down from what the word leaves out */
			f[i].bits = (uint8_t)(width - by);
		settle(an, &f[i], width - by, false, r);
	}
	if (root && by <= UP_MOST)
		remember(an, &(struct fay_form){ .id = a->id,
						 .delta = a->delta,
						 .root = r->id,
						 .root_delta = r->delta,
						 .least = r->s.umin,
						 .most = r->s.umax,
						 .factor = one,
						 .up = (uint8_t)by,
						 .rest_high = ((int64_t)1 << by) - 1,
						 .bits = 64,
						 .exact = true,
						 .split = true });
}

/* The lowest bits are cleared: shifted down and up again. */
void fay_form_mask(struct fay_analysis *an, const struct fay_value *a, const struct fay_value *b,
		   unsigned width, struct fay_value *r)
{
	uint64_t cleared = ~b->s.umin & mask_of(width);
	struct fay_scalar by = fay_scalar_const((uint64_t)__builtin_popcountll(cleared));
	struct fay_form f[WAYS];
	struct fay_value shifted;

	if (!is_number(b) || (cleared & (cleared + 1)) || !cleared || cleared > UINT16_MAX ||
	    !own_forms(an, a, false, f))
		return;
	shifted = fay_value_fresh(an, fay_scalar_shr(&a->s, &by));
	fay_form_shift_down(an, a, (unsigned)by.umin, width, &shifted);
	fay_form_shift_up(an, &shifted, (unsigned)by.umin, width, r);
}

/* r is what is left of a if all bits from `width` on are cut off. */
void fay_form_narrow(struct fay_analysis *an, const struct fay_value *a, unsigned width,
		     struct fay_value *r)
{
	struct fay_form f[WAYS];
	unsigned count = own_forms(an, a, true, f);

	if (!plain(a) || a->init != 0xff || name_part(an, a, 0, width, r))
		return;
	for (unsigned i = 0; i < count; i++)
		settle_low(an, &f[i], width, false, r);
}

/* lea: base + index * scale. */
void fay_form_address(struct fay_analysis *an, const struct fay_operand *mem, unsigned width,
		      struct fay_value *r)
{
	const struct fay_value *loc = an->current->loc;
	bool based = mem->base != FAY_NO_REG;
	struct fay_value base, index, scaled;

	if (!an->form_count || mem->rip || mem->disp || mem->index == FAY_NO_REG ||
	    !plain(&loc[mem->index]) || (based && !plain(&loc[mem->base])))
		return;
	index = fay_value_narrow(an, loc[mem->index], width);
	scaled = mem->scale == 1 ? index : fay_value_fresh(an, fay_scalar_range(0, mask_of(width)));
	if (mem->scale != 1)
		fay_form_shift_up(an, &index, (unsigned)__builtin_ctz(mem->scale), width,
				  based ? &scaled : r);
	if (!based)
		return;
	base = fay_value_narrow(an, loc[mem->base], width);
	fay_form_sum(an, false, &base, &scaled, width, r);
}
