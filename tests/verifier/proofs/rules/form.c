/* SPDX-License-Identifier: MIT */
/* Forms and values of forms. */
#include "rule.h"

#include "verifier/checker/machine/form.c"

static bool is_form(const struct form *f)
{
	return f->v[0] ? f->k[0] && (f->v[1] ? f->v[0] < f->v[1] && f->k[1] : !f->k[1])
		       : !f->v[1] && !f->k[0] && !f->k[1];
}

RULE(form_add)
{
	struct form f = choose_form(3), g = choose_form(3), sum = f;
	uint64_t k = any64("by");

	opaque_products();
	if (!form_add(&sum, &g, (int64_t)k))
		return;
	prove(is_form(&sum), "that the sum is in order");
	prove((uint64_t)sum.c == (uint64_t)f.c + k * (uint64_t)g.c, "the number modulo 2^64");
	for (uint32_t id = 1; id <= 3; id++)
		prove((uint64_t)factor(&sum, id) ==
			      (uint64_t)factor(&f, id) + k * (uint64_t)factor(&g, id),
		      "each factor modulo 2^64");
}

RULE(form_plus)
{
	struct form f = choose_form(3), g = choose_form(3), sum = f;
	int64_t k = (int64_t)any64("by");

	opaque_products();
	if (!form_plus(&sum, &g, k))
		return;
	prove(is_form(&sum), "that the sum is in order");
	prove(sum.c == f.c + (wide)g.c * k, "the number");
	for (uint32_t id = 1; id <= 3; id++)
		prove(factor(&sum, id) == factor(&f, id) + (wide)factor(&g, id) * k, "each factor");
}

RULE(form_scale)
{
	struct form f = choose_form(2), r = f;
	uint64_t k = any64("by");

	opaque_products();
	form_scale(&r, k);
	prove(is_form(&r), "that the form is in order");
	prove((uint64_t)r.c == k * (uint64_t)f.c, "the number modulo 2^64");
	for (uint32_t id = 1; id <= 2; id++)
		prove((uint64_t)factor(&r, id) == k * (uint64_t)factor(&f, id),
		      "each factor modulo 2^64");
}

RULE(form_reduce)
{
	struct form f = choose_form(2), r = f;
	unsigned bits = choose_bits();

	form_reduce(&r, bits);
	prove(is_form(&r), "that the form is in order");
	prove(low((uint64_t)r.c, bits) == low((uint64_t)f.c, bits), "the number modulo 2^bits");
	for (uint32_t id = 1; id <= 2; id++)
		prove(low((uint64_t)factor(&r, id), bits) == low((uint64_t)factor(&f, id), bits),
		      "each factor modulo 2^bits");
}

/* ---- what is known of callees from here on ---- */

struct range contract_form_range(struct machine *of, const struct form *f)
{
	struct range r = { any128("form_lo"), any128("form_hi") };

	assume(r.lo >= -UNKNOWN && r.lo <= r.hi && r.hi <= UNKNOWN);
	assume(bounds(&r, integer(f)));
	return r;
}

/* A form of the same variables that is congruent: rule form_reduce, and products with each. */
void contract_form_reduce(struct form *f, unsigned bits)
{
	uint64_t before = (uint64_t)integer(f);

	f->c = (int64_t)any64("reduced_c");
	for (unsigned i = 0; i < 2 && f->v[i]; i++)
		f->k[i] = (int64_t)any64("reduced_k");
	assume(low((uint64_t)integer(f), bits) == low(before, bits));
}

RULE(value_read)
{
	unsigned bits = choose_width(), b;
	bool sign = choose("sign", 2), exact;
	struct value v;
	struct range r;
	struct form f;
	wide shift;
	uint64_t number;
	big read, base;

	opaque_products();
	replace("form_range", "contract_form_range");
	replace("form_reduce", "contract_form_reduce");
	any_state(1);
	v = any_value(2);
	number = number_of(&v);
	r = value_read(&m, &v, bits, sign, &f, &shift, &exact);
	read = sign ? (big)signed_low(number, bits) : (big)low(number, bits);
	b = v.bits < bits ? v.bits : bits;
	base = sign && b == bits ? -POWER(b - 1) : 0;
	prove(!exact || (integer(&f) - base) >> b == -shift >> b, "the same window");
	prove(!exact || integer(&f) + shift == read, "the form that the number is, if it is exact");
	prove(within(&r, read), "the range of the number as it is read");
	prove(v.bits < bits || low((uint64_t)integer(&f), bits) == low(number, bits),
	      "the form that is congruent to it");
}

struct range contract_value_range(struct machine *of, const struct value *v, unsigned bits,
				  bool sign)
{
	struct range r = { any128("range_lo"), any128("range_hi") };
	big n = reading(number_of(v), bits, sign);

	assume(within(&r, n) && r.lo >= (sign ? INT64_MIN : 0) && r.hi <= UINT64_MAX);
	assume(sign ? r.lo >= -POWER(bits - 1) && r.hi < POWER(bits - 1) : r.hi < POWER(bits));
	return r;
}

bool contract_value_form(struct machine *of, const struct value *v, unsigned bits, bool sign,
			 struct form *f)
{
	uint64_t n = number_of(v);

	if (choose("no form", 2))
		return false;
	*f = v->f;
	f->c = (int64_t)any64("form_c");
	for (unsigned i = 0; i < 2 && f->v[i]; i++)
		f->k[i] = (int64_t)any64("form_k");
	assume(integer(f) == reading(n, bits, sign));
	return true;
}

void replace_reads(void)
{
	opaque_products();
	replace("value_range", "contract_value_range");
	replace("value_form", "contract_value_form");
	replace("form_range", "contract_form_range");
}

RULE(value_fresh)
{
	unsigned bits = choose_width();
	struct range r = { any128("lo"), any128("hi") };
	wide n = any128("n");
	struct value v;

	any_state(1);
	assume(r.lo <= n && n <= r.hi && r.lo > -POWER(120) && r.hi < POWER(120));
	v = value_fresh(&m, r.lo, r.hi, bits);
	prove(v.f.v[0] ? 1 : number_of(&v) == low((uint64_t)n, bits), "a constant");
	if (v.f.v[0]) {
		struct range of = var_range(var_find(&m.s, v.f.v[0]));

		prove(v.bits == bits && v.f.k[0] == 1 && !v.f.c && !v.f.v[1], "a new variable");
		prove(within(&of, n) || within(&of, low((uint64_t)n, bits)), "its range");
	}
}
