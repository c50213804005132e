/* SPDX-License-Identifier: MIT */
/*
 * Quotients and remainders by a constant, which compilers compute by multiplication: x % 10 is x - 10 * (x * 0xcccccccd >> 35).
 *
 * A form says of a word that it is, modulo 2^bits, an integer I with
 *
 *	factor * X + error * E + low <= I <= factor * X + error * E + high        (factor, error, low, high: fractions with FRACTION bits, exact)
 *
 * where X, the root, is the unsigned reading of another value. The upper half of x * M is M/2^64 * X less a fraction; a shift to the right divides and takes
 * away another fraction; sums, differences and products by constants are what they are, for words as for integers, modulo 2^bits. In x - 10 * q the factor
 * is nearly 0, so I lies within a few numbers: if they fit in the word, it is one of them. Nothing is recognised, and no multiplier is
 * believed to be right: with a wrong one the factor is not small enough, and the bounds are those that follow.
 *
 * E, in [0, 1], is the fraction that was cut off a word, as a part of the most that could be. It has a name, because that word may come in twice: 7 * q is 8 * q - q, and x / 7
 * is ((x - q >> 1) + q) >> 2, q being x * 0x24924925 >> 32. One such fraction is followed at a time; any other widens low and high.
 *
 * The integer part is certain only where the word is I itself (`exact`): a shift to the right, an `and` or the upper half of a product need that, or all bits.
 * Forms are of names (struct fay_value), of the block in hand only: a name is one number for as long as its state lives, and the next block has other names.
 */
#include "transfer.h"

typedef __int128 wide;

#define FRACTION 80u

static const wide one = (wide)1 << FRACTION, most = (wide)1 << 120; /* a factor's or a bound's magnitude */

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
	wide low = product(f->factor, f->factor < 0 ? f->most : f->least, &rest_low) + (f->low >> FRACTION);
	wide high = product(f->factor, f->factor < 0 ? f->least : f->most, &rest_high) + (f->high >> FRACTION);

	rest_low += f->low & (one - 1);
	rest_high += f->high & (one - 1);
	return (struct bounds){ low + (rest_low >> FRACTION) + ((rest_low & (one - 1)) != 0), high + (rest_high >> FRACTION) };
}

static bool plain(const struct fay_value *v) { return v->kind == KIND_SCALAR && v->id; }

static const struct fay_form *find(const struct fay_analysis *an, const struct fay_value *v)
{
	for (uint32_t i = 0; plain(v) && i < an->form_count && i < FAY_FORMS; i++)
		if (an->forms[i].id == v->id && an->forms[i].delta == v->delta)
			return &an->forms[i];
	return NULL;
}

static struct fay_form of_root(const struct fay_value *v)
{
	return (struct fay_form){ .root = v->id, .root_delta = v->delta, .least = v->s.umin, .most = v->s.umax, .factor = one, .bits = 64, .exact = true };
}

/* As an operand beside `other`: a form of its own, other's root, or a number. */
static bool beside(const struct fay_analysis *an, const struct fay_value *v, unsigned width, const struct fay_form *other, struct fay_form *f)
{
	const struct fay_form *own = find(an, v);

	if (own) {
		*f = *own;
		return own->root == other->root && own->root_delta == other->root_delta;
	}
	if (plain(v) && v->id == other->root && v->delta == other->root_delta) {
		*f = of_root(v);
		return true;
	}
	if (v->kind != KIND_SCALAR || !fay_scalar_is_const(&v->s))
		return false;
	wide number = fay_scalar_sext(&v->s, width).smin;

	*f = *other;
	f->factor = f->error = 0;
	f->error_of = 0;
	f->bits = 64;
	f->exact = number >= 0;
	if (number > INT32_MAX || number < INT32_MIN)
		return false;
	f->low = f->high = number * one;
	return true;
}

static bool small(wide x) { return x > -most && x < most; }

/* What r learns of f, whose bounds are b. */
static void learn(const struct fay_form *f, struct bounds b, unsigned room, struct fay_value *r)
{
	struct fay_scalar s = r->s, range;

	if (f->exact)
		range = fay_scalar_range((uint64_t)b.low, b.high > (wide)mask_of(room) ? mask_of(room) : (uint64_t)b.high);
	else if (room == 64 && f->bits == 64 && b.low >= INT64_MIN && b.high <= INT64_MAX)
		range = fay_scalar_srange((int64_t)b.low, (int64_t)b.high);
	else
		return;
	if (fay_scalar_meet(&s, &range))
		r->s = s;
}

/*
 * The result r, of which all bits from `room` on are zero, has form f; f->exact if it is known to be I, `positive` if I is known not to be
 * negative. It is I if it agrees with I in all bits that it has, and I has no more.
 */
static void settle(struct fay_analysis *an, struct fay_form *f, unsigned room, bool positive, struct fay_value *r)
{
	struct fay_form whole = *f;
	struct bounds b;

	if (!plain(r) || f->least > f->most || !small(f->factor) || !small(f->error) || !small(f->low) || !small(f->high))
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
	an->forms[an->form_count++ % FAY_FORMS] = *f;
}

/* The same for a result that is cut to `width` bits. */
static void settle_low(struct fay_analysis *an, struct fay_form *f, unsigned width, bool positive, struct fay_value *r)
{
	f->exact = false;
	if (f->bits > width)
		f->bits = (uint8_t)width;
	settle(an, f, width, positive, r);
}

/* f := f * n. */
static bool multiply(struct fay_form *f, wide n)
{
	wide low, high;

	if (__builtin_mul_overflow(f->factor, n, &f->factor) || __builtin_mul_overflow(f->error, n, &f->error) ||
	    __builtin_mul_overflow(f->low, n, &low) || __builtin_mul_overflow(f->high, n, &high))
		return false;
	f->low = n < 0 ? high : low;
	f->high = n < 0 ? low : high;
	return small(f->factor) && small(f->error) && small(f->low) && small(f->high);
}

/* The fraction is cut off f, which was divided by 2^by, and `id` names what is left. E becomes all that is not certain of it, unless the E there was matters about as much. */
static void cut_off(struct fay_form *f, unsigned by, uint32_t id)
{
	wide cut = one - (one >> by), error = f->error < 0 ? -f->error : f->error;

	f->low -= cut;
	if (2 * error >= cut)
		return;
	forget_error(f);
	f->error = f->low - f->high;
	f->error_of = id;
	f->low = f->high;
}

/* f := f / 2^by, with its fraction. False: the factor has too many binary places. */
static bool divide(struct fay_form *f, unsigned by)
{
	if (by > 64 || (f->factor & (((wide)1 << by) - 1)))
		return false;
	if (f->error & (((wide)1 << by) - 1))
		forget_error(f);
	f->factor >>= by;
	f->error >>= by;
	f->low >>= by;
	f->high = -(-f->high >> by);
	return true;
}

void fay_form_product_high(struct fay_analysis *an, const struct fay_value *a, const struct fay_value *b, unsigned width, struct fay_value *r)
{
	const struct fay_value *x = fay_scalar_is_const(&a->s) ? b : a, *by = x == a ? b : a;
	const struct fay_form *own = find(an, x);
	struct fay_form f;

	if (!plain(x) || by->kind != KIND_SCALAR || !fay_scalar_is_const(&by->s) || fay_scalar_is_const(&x->s) || (own && !own->exact))
		return;
	f = own ? *own : of_root(x);
	/* factor * by / 2^width: what can be divided first is, so that the product fits. */
	if (f.factor & (((wide)1 << width) - 1))
		return;
	forget_error(&f);
	f.factor >>= width;
	f.low >>= width;
	f.high = -(-f.high >> width);
	if (!multiply(&f, (wide)by->s.umin))
		return;
	cut_off(&f, width, r->id);
	settle(an, &f, width, false, r);
}

void fay_form_product(struct fay_analysis *an, const struct fay_value *a, const struct fay_value *b, unsigned width, struct fay_value *r)
{
	const struct fay_value *x = fay_scalar_is_const(&a->s) ? b : a, *by = x == a ? b : a;
	const struct fay_form *own = find(an, x);
	struct fay_form f;

	if (!plain(x) || by->kind != KIND_SCALAR || !fay_scalar_is_const(&by->s) || fay_scalar_is_const(&x->s))
		return;
	f = own ? *own : of_root(x);
	if ((own || by->s.umin > UINT8_MAX / 2) && multiply(&f, fay_scalar_sext(&by->s, width).smin))
		settle_low(an, &f, width, false, r);
}

void fay_form_sum(struct fay_analysis *an, bool minus, const struct fay_value *a, const struct fay_value *b, unsigned width, struct fay_value *r)
{
	const struct fay_form *some = find(an, a);
	struct fay_form f, g;
	bool positive;

	some = some ? some : find(an, b);
	if (!some || !beside(an, a, width, some, &f) || !beside(an, b, width, some, &g))
		return;
	if (f.error && g.error && f.error_of != g.error_of)
		forget_error(&g);
	f.error_of = f.error ? f.error_of : g.error_of;
	f.error += minus ? -g.error : g.error;
	f.factor += minus ? -g.factor : g.factor;
	f.low += minus ? -g.high : g.low;
	f.high += minus ? -g.low : g.high;
	f.bits = f.bits < g.bits ? f.bits : g.bits;
	positive = !minus && f.exact && g.exact;
	f.least = f.least > g.least ? f.least : g.least;
	f.most = f.most < g.most ? f.most : g.most;
	settle_low(an, &f, width, positive, r);
}

void fay_form_shift_up(struct fay_analysis *an, const struct fay_value *a, unsigned by, unsigned width, struct fay_value *r)
{
	struct fay_value factor = { .s = fay_scalar_const((uint64_t)1 << by), .kind = KIND_SCALAR };

	if (find(an, a))
		fay_form_product(an, a, &factor, width, r);
}

void fay_form_shift_down(struct fay_analysis *an, const struct fay_value *a, unsigned by, unsigned width, struct fay_value *r)
{
	const struct fay_form *own = find(an, a);
	struct fay_form f;

	if (!plain(a) || fay_scalar_is_const(&a->s) || by == 0 || by >= width)
		return;
	f = own ? *own : of_root(a);
	if (f.bits < width || !divide(&f, by))
		return;
	cut_off(&f, by, r->id);
	if (!f.exact)
		f.bits = (uint8_t)(width - by); /* the others would have come down from what the word leaves out */
	settle(an, &f, width - by, false, r);
}

/* The lowest bits are cleared. */
void fay_form_mask(struct fay_analysis *an, const struct fay_value *a, const struct fay_value *b, unsigned width, struct fay_value *r)
{
	const struct fay_form *own = find(an, a);
	uint64_t cleared = ~b->s.umin & mask_of(width);
	struct fay_form f;

	if (!own || !fay_scalar_is_const(&b->s) || (cleared & (cleared + 1)) || cleared > UINT16_MAX || own->bits < width)
		return;
	f = *own;
	f.low -= (wide)cleared * one;
	settle(an, &f, width, false, r);
}

/* r is what is left of a if all bits from `width` on are cut off: under the same name if the block has done that before. */
void fay_form_narrow(struct fay_analysis *an, const struct fay_value *a, unsigned width, struct fay_value *r)
{
	const struct fay_form *own;
	struct fay_form f;

	if (!plain(a) || a->init != 0xff)
		return;
	for (uint32_t i = 0; i < an->narrow_count && i < FAY_NARROWS; i++) {
		const struct fay_narrow *n = &an->narrows[i];

		if (n->of == a->id && n->delta == a->delta && n->width == width) {
			r->id = n->id;
			return;
		}
	}
	an->narrows[an->narrow_count++ % FAY_NARROWS] = (struct fay_narrow){ .of = a->id, .delta = a->delta, .width = width, .id = r->id };
	own = find(an, a);
	if (!own)
		return;
	f = *own;
	settle_low(an, &f, width, false, r);
}

/* lea: base + index * scale. */
void fay_form_address(struct fay_analysis *an, const struct fay_operand *mem, unsigned width, struct fay_value *r)
{
	const struct fay_value *loc = an->current->loc;
	bool based = mem->base != FAY_NO_REG;
	struct fay_value base, index, scaled;

	if (!an->form_count || mem->rip || mem->disp || mem->index == FAY_NO_REG || !plain(&loc[mem->index]) || (based && !plain(&loc[mem->base])))
		return;
	index = fay_value_narrow(an, loc[mem->index], width);
	scaled = mem->scale == 1 ? index : fay_value_fresh(an, fay_scalar_range(0, mask_of(width)));
	if (mem->scale != 1)
		fay_form_shift_up(an, &index, (unsigned)__builtin_ctz(mem->scale), width, based ? &scaled : r);
	if (!based)
		return;
	base = fay_value_narrow(an, loc[mem->base], width);
	fay_form_sum(an, false, &base, &scaled, width, r);
}
