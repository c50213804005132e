/* SPDX-License-Identifier: MIT */
/* Terms, what is asked of the solver, and where paths part. */
#include "exec.h"

#include <stdio.h>
#include <string.h>

unsigned width_of(struct exec *x, term t)
{
	return Z3_get_bv_sort_size(x->z, Z3_get_sort(x->z, t));
}

term number(struct exec *x, uint64_t n, unsigned bits)
{
	return Z3_mk_unsigned_int64(x->z, n, Z3_mk_bv_sort(x->z, bits));
}

term simple(struct exec *x, term t)
{
	return Z3_simplify(x->z, t);
}

term symbol(struct exec *x, const char *name, unsigned bits)
{
	char text[96];

	snprintf(text, sizeof(text), "%s!%u", name, x->symbols++);
	return Z3_mk_const(x->z, Z3_mk_string_symbol(x->z, text), Z3_mk_bv_sort(x->z, bits));
}

bool is_number(struct exec *x, term t, uint64_t *n)
{
	return Z3_is_numeral_ast(x->z, t) && Z3_get_numeral_uint64(x->z, t, n);
}

term part(struct exec *x, term t, unsigned high, unsigned low)
{
	return simple(x, Z3_mk_extract(x->z, high, low, t));
}

term resize(struct exec *x, term t, unsigned bits, bool sign)
{
	unsigned have = width_of(x, t);

	if (have == bits)
		return t;
	if (have > bits)
		return part(x, t, bits - 1, 0);
	return simple(x, sign ? Z3_mk_sign_ext(x->z, bits - have, t)
			      : Z3_mk_zero_ext(x->z, bits - have, t));
}

term truth(struct exec *x, term c)
{
	return simple(x, Z3_mk_ite(x->z, c, number(x, 1, 1), number(x, 0, 1)));
}

term condition(struct exec *x, term bit)
{
	return simple(x, Z3_mk_eq(x->z, bit, number(x, 1, 1)));
}

void add_fact(struct exec *x, term c)
{
	if (Z3_get_bool_value(x->z, c) == Z3_L_TRUE)
		return;
	if (x->fact_count == FACTS_MOST)
		path_fail(x, "too many facts");
	x->facts[x->fact_count++] = c;
}

/* ---- products of two unknowns ---- */

static term both(struct exec *x, term a, term b)
{
	return Z3_mk_and(x->z, 2, (term[]){ a, b });
}

static term either(struct exec *x, term a, term b)
{
	return Z3_mk_or(x->z, 2, (term[]){ a, b });
}

/* -2^n <= t < 2^n */
static term is_short(struct exec *x, term t, unsigned n)
{
	unsigned w = width_of(x, t);
	term high = Z3_mk_extract(x->z, w - 1, n, t);

	return either(x, Z3_mk_eq(x->z, high, number(x, 0, w - n)),
		      Z3_mk_eq(x->z, Z3_mk_bvnot(x->z, high), number(x, 0, w - n)));
}

/* Half as wide, signed or not. */
static term is_word(struct exec *x, term t)
{
	unsigned w = width_of(x, t);
	term high = Z3_mk_extract(x->z, w - 1, w / 2, t);

	return either(x, is_short(x, t, w / 2 - 1), Z3_mk_eq(x->z, high, number(x, 0, w / 2)));
}

/* The product of a and b is that of the integers: so many bits in both together. */
static term fits(struct exec *x, term a, term b)
{
	unsigned w = width_of(x, a), n = 0;
	term any[64];

	for (unsigned i = 4; i < w - 2 && n < 60; i += 4)
		any[n++] = both(x, is_short(x, a, i), is_short(x, b, w - 2 - i));
	any[n++] = both(x, is_short(x, a, w / 2 - 1), is_word(x, b));
	any[n++] = both(x, is_short(x, b, w / 2 - 1), is_word(x, a));
	return Z3_mk_or(x->z, n, any);
}

/* The product of numbers of i and j bits has i + j bits, and one for -2^i * -2^j. */
static void add_size(struct exec *x, const struct product *p)
{
	unsigned w = width_of(x, p->p), both_bits = w - 6;

	for (unsigned i = 0; i <= both_bits; i++)
		add_fact(x, Z3_mk_implies(
				    x->z,
				    both(x, is_short(x, p->a, i), is_short(x, p->b, both_bits - i)),
				    is_short(x, p->p, both_bits + 1)));
}

/* o: k * a, p: k * b, both exact: in the order of a and b, or the other for k < 0. */
static void add_order(struct exec *x, term k, term a, const struct product *o, term b,
		      const struct product *p)
{
	Z3_context z = x->z;
	term zero = number(x, 0, width_of(x, k)), exact = both(x, o->exact, p->exact);
	term up = Z3_mk_bvsle(z, a, b), down = Z3_mk_bvsle(z, b, a);
	term less = Z3_mk_bvsle(z, o->p, p->p), more = Z3_mk_bvsle(z, p->p, o->p);
	term plus = both(x, exact, Z3_mk_bvsge(z, k, zero));
	term minus = both(x, exact, Z3_mk_bvsle(z, k, zero));

	add_fact(x, Z3_mk_implies(z, both(x, plus, up), less));
	add_fact(x, Z3_mk_implies(z, both(x, plus, down), more));
	add_fact(x, Z3_mk_implies(z, both(x, minus, up), more));
	add_fact(x, Z3_mk_implies(z, both(x, minus, down), less));
}

static void add_pair(struct exec *x, const struct product *o, const struct product *p)
{
	Z3_context z = x->z;
	term same;

	if (width_of(x, o->a) != width_of(x, p->a))
		return;
	same = either(x, both(x, Z3_mk_eq(z, p->a, o->a), Z3_mk_eq(z, p->b, o->b)),
		      both(x, Z3_mk_eq(z, p->a, o->b), Z3_mk_eq(z, p->b, o->a)));
	add_fact(x, Z3_mk_implies(z, same, Z3_mk_eq(z, p->p, o->p)));
	if (!x->ordered)
		return;
	if (p->a == o->a)
		add_order(x, o->a, o->b, o, p->b, p);
	else if (p->a == o->b)
		add_order(x, o->b, o->a, o, p->b, p);
	else if (p->b == o->a)
		add_order(x, o->a, o->b, o, p->a, p);
	else if (p->b == o->b)
		add_order(x, o->b, o->a, o, p->a, p);
}

static term add_product(struct exec *x, term a, term b)
{
	term zero = number(x, 0, width_of(x, a));
	struct product p = { a, b, NULL, Z3_mk_true(x->z) };
	const struct product nothing = { a, zero, zero, Z3_mk_true(x->z) };

	for (unsigned i = 0; i < x->products; i++) {
		struct product *o = &x->product[i];

		if ((o->a == a && o->b == b) || (o->a == b && o->b == a))
			return o->p;
	}
	if (x->products == PRODUCTS)
		path_fail(x, "too many products");
	p.p = symbol(x, "product", width_of(x, a));
	if (x->ordered) {
		p.exact = condition(x, symbol(x, "exact", 1));
		if (x->defined) {
			add_fact(x, Z3_mk_eq(x->z, p.exact, fits(x, a, b)));
			add_size(x, &p);
		}
		add_order(x, a, zero, &nothing, b, &p);
		add_order(x, b, zero, &nothing, a, &p);
	}
	for (unsigned i = 0; i < x->products; i++)
		add_pair(x, &x->product[i], &p);
	x->product[x->products++] = p;
	return p.p;
}

/* A power of two, or its negative, is left to the solver. */
static bool easy(struct exec *x, term t)
{
	return Z3_is_numeral_ast(x->z, t);
}

term multiply(struct exec *x, term a, term b)
{
	if (x->opaque && !easy(x, a) && !easy(x, b) && width_of(x, a) >= 32)
		return add_product(x, a, b);
	return simple(x, Z3_mk_bvmul(x->z, a, b));
}

/* n = q * d + r and r < d, in twice the width, where nothing wraps. */
static void add_quotient(struct exec *x, term n, term d, term *q, term *r)
{
	unsigned w = width_of(x, n);
	term wide_n = resize(x, n, 2 * w, false), wide_d = resize(x, d, 2 * w, false), p, left;

	*q = symbol(x, "quotient", w);
	p = multiply(x, resize(x, *q, 2 * w, false), wide_d);
	left = Z3_mk_bvsub(x->z, wide_n, p);
	add_fact(x, either(x, Z3_mk_eq(x->z, d, number(x, 0, w)),
			   both(x, Z3_mk_bvule(x->z, p, wide_n), Z3_mk_bvult(x->z, left, wide_d))));
	*r = part(x, left, w - 1, 0);
}

term product_exact(struct exec *x, term a, term b)
{
	if (easy(x, a) || easy(x, b))
		return fits(x, a, b);
	add_product(x, a, b);
	for (unsigned i = 0; i < x->products; i++) {
		struct product *o = &x->product[i];

		if ((o->a == a && o->b == b) || (o->a == b && o->b == a))
			return o->exact;
	}
	return Z3_mk_false(x->z);
}

term divide_terms(struct exec *x, term a, term b, bool sign, bool rest)
{
	Z3_context z = x->z;
	term zero = number(x, 0, width_of(x, a)), minus_a, minus_b, n, d, q, r, t;

	if (!x->opaque || easy(x, b)) {
		if (rest)
			return simple(x, sign ? Z3_mk_bvsrem(z, a, b) : Z3_mk_bvurem(z, a, b));
		return simple(x, sign ? Z3_mk_bvsdiv(z, a, b) : Z3_mk_bvudiv(z, a, b));
	}
	minus_a = Z3_mk_bvslt(z, a, zero);
	minus_b = Z3_mk_bvslt(z, b, zero);
	n = sign ? simple(x, Z3_mk_ite(z, minus_a, Z3_mk_bvneg(z, a), a)) : a;
	d = sign ? simple(x, Z3_mk_ite(z, minus_b, Z3_mk_bvneg(z, b), b)) : b;
	add_quotient(x, n, d, &q, &r);
	if (!sign)
		return rest ? r : q;
	t = rest ? Z3_mk_ite(z, minus_a, Z3_mk_bvneg(z, r), r)
		 : Z3_mk_ite(z, Z3_mk_xor(z, minus_a, minus_b), Z3_mk_bvneg(z, q), q);
	return simple(x, t);
}

/* ---- the solver ---- */

static Z3_lbool ask(struct exec *x, const char *with, term extra, unsigned ms, Z3_model *model)
{
	Z3_context z = x->z;
	Z3_params params;
	Z3_tactic tactic;
	Z3_solver solver;
	Z3_lbool answer;

	/* each counted before the next is made: Z3 keeps only the last one on its own */
	params = Z3_mk_params(z);
	Z3_params_inc_ref(z, params);
	Z3_params_set_uint(z, params, Z3_mk_string_symbol(z, "timeout"), ms);
	tactic = Z3_mk_tactic(z, with);
	Z3_tactic_inc_ref(z, tactic);
	solver = Z3_mk_solver_from_tactic(z, tactic);
	Z3_solver_inc_ref(z, solver);
	Z3_solver_set_params(z, solver, params);
	for (unsigned i = 0; i < x->fact_count; i++)
		Z3_solver_assert(z, solver, x->facts[i]);
	Z3_solver_assert(z, solver, extra);
	answer = Z3_solver_check(z, solver);
	if (model && answer == Z3_L_TRUE) {
		*model = Z3_solver_get_model(z, solver);
		Z3_model_inc_ref(z, *model);
	}
	Z3_solver_dec_ref(z, solver);
	Z3_tactic_dec_ref(z, tactic);
	Z3_params_dec_ref(z, params);
	return answer;
}

/* Each of the two is hundreds of times faster than the other for some questions: first the one that
 * the rule's last hard question was one for. */
Z3_lbool query(struct exec *x, term extra, unsigned ms, Z3_model *model)
{
	static const char *const solvers[] = { "smt", "qfbv" };
	const char *first = solvers[x->second], *other = solvers[!x->second];
	Z3_lbool answer = ask(x, first, extra, 150, model);

	x->queries++;
	if (answer == Z3_L_UNDEF) {
		answer = ask(x, other, extra, ms / 2, model);
		x->second ^= answer != Z3_L_UNDEF;
	}
	return answer == Z3_L_UNDEF && ms > 300 ? ask(x, first, extra, ms / 2, model) : answer;
}

static bool possible(struct exec *x, term c)
{
	return query(x, c, 300, NULL) != Z3_L_FALSE;
}

static struct decision *take(struct exec *x, struct decision new)
{
	if (x->at == x->ways) {
		if (x->ways == WAYS)
			path_fail(x, "too many branches");
		x->way[x->ways++] = new;
	}
	return &x->way[x->at++];
}

bool decide(struct exec *x, term c)
{
	Z3_lbool known = Z3_get_bool_value(x->z, c = simple(x, c));
	term not = simple(x, Z3_mk_not(x->z, c));
	struct decision new = { 0, 1, 0 };
	bool yes;

	if (known != Z3_L_UNDEF)
		return known == Z3_L_TRUE;
	if (x->at == x->ways) {
		/* the path is possible, so one of the two is */
		new.value = !possible(x, c);
		new.last = new.value || possible(x, not);
	}
	yes = take(x, new)->value == 0;
	add_fact(x, yes ? c : not);
	return yes;
}

unsigned choose(struct exec *x, unsigned n)
{
	return take(x, (struct decision){ 0, n - 1, 0 })->value;
}

uint64_t settle(struct exec *x, term address)
{
	Z3_context z = x->z;
	uint64_t n = 0;

	for (;;) {
		Z3_model model = NULL;
		term value = NULL, same;
		struct decision *d;

		if (is_number(x, address, &n))
			return n;
		if (x->at == x->ways) {
			if (query(x, Z3_mk_true(z), x->limit_ms, &model) != Z3_L_TRUE)
				path_leave(x);
			if (!Z3_model_eval(z, model, address, true, &value) ||
			    !is_number(x, value, &n))
				path_fail(x, "an address without a value");
			Z3_model_dec_ref(z, model);
		}
		d = take(x, (struct decision){ 0, 1, n });
		n = d->pick;
		same = Z3_mk_eq(z, address, number(x, n, 64));
		if (d->value == 0) {
			add_fact(x, same);
			return n;
		}
		add_fact(x, Z3_mk_not(z, same));
	}
}
