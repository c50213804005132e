/* SPDX-License-Identifier: MIT */
/*
 * What multiplications, sums, shifts and masks do to the forms of numbers (transfer_form.c), and so
 * what is known of quotients and remainders by a constant.
 */
#include "transfer_form.h"

void fay_form_product_high(struct fay_analysis *an, const struct fay_value *a,
			   const struct fay_value *b, unsigned width, struct fay_value *r)
{
	const struct fay_value *x = fay_scalar_is_const(&a->s) ? b : a, *by = x == a ? b : a;
	struct fay_form f[WAYS];
	unsigned count = is_number(by) ? fay_form_sources(an, x, f) : 0;

	for (unsigned i = 0; i < count; i++) {
		fay_form_forget_error(&f[i]);
		/* factor * by / 2^width: what can be divided first is, so that the product fits. */
		if (!f[i].exact || !fay_form_divide(&f[i], width) ||
		    !fay_form_scale(&f[i], (wide)by->s.umin))
			continue;
		f[i].shifted = false;
		f[i].multiple = 0;
		fay_form_cut_off(an, &f[i], width);
		fay_form_settle(an, &f[i], width, false, r);
	}
}

void fay_form_product(struct fay_analysis *an, const struct fay_value *a, const struct fay_value *b,
		      unsigned width, struct fay_value *r)
{
	const struct fay_value *x = fay_scalar_is_const(&a->s) ? b : a, *by = x == a ? b : a;
	struct fay_form f[WAYS];
	unsigned count = is_number(by) && !is_number(x) ? fay_form_sources(an, x, f) : 0;

	for (unsigned i = 0; i < count; i++) {
		if ((count == 1 && !f[i].id && by->s.umin <= UINT8_MAX / 2) ||
		    !fay_form_multiply(&f[i], fay_scalar_sext(&by->s, width).smin))
			continue;
		f[i].shifted = false;
		fay_form_settle_low(an, &f[i], width, false, r);
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
	    !n || !fay_form_unscale(&k, f->multiple))
		return false;
	k.multiple = 1;
	if (!fay_form_multiply(&k, n))
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

	fay_form_find_base(&f);
	fay_form_find_base(&g);
	f.split = f.shifted = false;
	if (add_multiples(minus, &f, &g)) {
		fay_form_settle_low(an, &f, width, positive, r);
		return;
	}
	f.multiple = 0;
	if (!fay_form_lower(&f, f.up < g.up ? f.up : g.up) || !fay_form_lower(&g, f.up))
		return;
	if (f.error && g.error && f.error_of != g.error_of)
		fay_form_forget_error(&g);
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
	fay_form_settle_low(an, &f, width, positive, r);
}

/* All forms of v, and v itself. */
static unsigned all_ways(const struct fay_analysis *an, const struct fay_value *v,
			 struct fay_form f[WAYS])
{
	unsigned count = fay_form_own(an, v, true, f);

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
	unsigned count =
		number > -rest_most && number < rest_most ? fay_form_own(an, x, false, f) : 0;

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

	if (fay_form_own(an, a, false, f))
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
	unsigned count = by == 0 || by >= width || !plain(r) ? 0 : fay_form_sources(an, a, f);
	bool root = count && !f[count - 1].id;

	if (!count)
		return;
	name_part(an, a, by, width - by, r);
	for (unsigned i = 0; i < count; i++) {
		if (f[i].bits < width || !fay_form_divide(&f[i], by))
			continue;
		f[i].shifted |= !f[i].id;
		f[i].multiple = 0;
		fay_form_cut_off(an, &f[i], by);
		if (!f[i].exact)
			/* the others would have come down from what the word leaves out */
			f[i].bits = (uint8_t)(width - by);
		fay_form_settle(an, &f[i], width - by, false, r);
	}
	if (root && by <= UP_MOST)
		fay_form_remember(an, &(struct fay_form){ .id = a->id,
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
	    !fay_form_own(an, a, false, f))
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
	unsigned count = fay_form_own(an, a, true, f);

	if (!plain(a) || a->init != 0xff || name_part(an, a, 0, width, r))
		return;
	for (unsigned i = 0; i < count; i++)
		fay_form_settle_low(an, &f[i], width, false, r);
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
