/* SPDX-License-Identifier: MIT */
/* Functions without a body: those of rules/rule.h, of the compiler, and of the C library. */
#include "exec.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void path_leave(struct exec *x)
{
	longjmp(x->out, 1);
}

void path_fail(struct exec *x, const char *format, ...)
{
	va_list list;

	if (query(x, Z3_mk_true(x->z), x->limit_ms, NULL) == Z3_L_FALSE)
		path_leave(x); /* no input comes here */
	va_start(list, format);
	vsnprintf(x->failure, sizeof(x->failure), format, list);
	va_end(list);
	longjmp(x->out, 2);
}

/* What the inputs are where the statement is false. */
static void tell(struct exec *x, Z3_model model, const char *what)
{
	size_t n = (size_t)snprintf(x->failure, sizeof(x->failure), "%s is false of", what);

	for (unsigned i = 0; i < x->inputs && n < sizeof(x->failure); i++) {
		unsigned bits = width_of(x, x->input[i].t);
		term v = NULL, minus;
		bool negative = false;
		uint64_t sign = 0;

		if (!Z3_model_eval(x->z, model, x->input[i].t, true, &v))
			continue;
		minus = simple(x, Z3_mk_bvneg(x->z, v));
		negative = is_number(x, part(x, v, bits - 1, bits - 1), &sign) && sign;
		n += (size_t)snprintf(x->failure + n, sizeof(x->failure) - n, " %s=%s%s",
				      x->input[i].name, negative ? "-" : "",
				      Z3_get_numeral_string(x->z, negative ? minus : v));
	}
}

/* Notes that the path comes to this claim, if it is possible. */
static void reach(struct exec *x, const char *what)
{
	unsigned i = 0;

	while (i < x->claims && strcmp(x->claim[i].what, what))
		i++;
	if (i == sizeof(x->claim) / sizeof(x->claim[0]))
		path_fail(x, "too many claims");
	if (i == x->claims) {
		x->claim[i].what = what;
		x->claim[x->claims++].reached = false;
	}
	if (!x->claim[i].reached)
		x->claim[i].reached = query(x, Z3_mk_true(x->z), x->limit_ms, NULL) == Z3_L_TRUE;
}

static void prove(struct exec *x, term c, const char *what)
{
	Z3_model model = NULL;
	Z3_lbool answer;

	c = simple(x, c);
	reach(x, what);
	/* while decisions are replayed an earlier path was here */
	if (x->at == x->ways && Z3_get_bool_value(x->z, c) != Z3_L_TRUE) {
		answer = query(x, Z3_mk_not(x->z, c), x->limit_ms, &model);
		if (answer == Z3_L_UNDEF)
			path_fail(x, "the solver gave up on \"%s\"", what);
		if (answer == Z3_L_TRUE) {
			tell(x, model, what);
			longjmp(x->out, 2);
		}
	}
	x->proved++;
	add_fact(x, c);
}

static term input(struct exec *x, const char *name, unsigned bits)
{
	term t = symbol(x, name, bits);

	if (x->inputs == INPUTS)
		path_fail(x, "too many inputs");
	x->input[x->inputs].name = name;
	x->input[x->inputs++].t = t;
	return t;
}

static const char *text(struct exec *x, term t)
{
	return memory_text(x, settle(x, t));
}

/* rules/rule.h; false: not of it */
static bool run_rule_call(struct exec *x, const char *name, term *a, term *r)
{
	uint64_t k = 0;

	if (!strcmp(name, "any64")) {
		*r = input(x, text(x, a[0]), 64);
	} else if (!strcmp(name, "any128")) {
		*r = input(x, text(x, a[0]), 128);
	} else if (!strcmp(name, "choose")) {
		is_number(x, a[1], &k);
		*r = number(x, choose(x, (unsigned)k), 32);
		if (x->inputs == INPUTS)
			path_fail(x, "too many inputs");
		x->input[x->inputs].name = text(x, a[0]);
		x->input[x->inputs++].t = *r;
	} else if (!strcmp(name, "assume")) {
		term c = condition(x, a[0]);

		if (Z3_get_bool_value(x->z, c) == Z3_L_FALSE)
			path_leave(x);
		add_fact(x, c);
	} else if (!strcmp(name, "prove")) {
		prove(x, condition(x, a[0]), text(x, a[1]));
	} else if (!strcmp(name, "replace")) {
		if (x->replacements == REPLACEMENTS)
			path_fail(x, "too many replacements");
		x->replaced[x->replacements].name = text(x, a[0]);
		x->replaced[x->replacements].inside = false;
		x->replaced[x->replacements++].by = text(x, a[1]);
	} else if (!strcmp(name, "opaque_products")) {
		x->opaque = true;
	} else if (!strcmp(name, "ordered_products")) {
		x->opaque = x->ordered = true;
		x->defined = Z3_get_bool_value(x->z, condition(x, a[0])) == Z3_L_TRUE;
	} else if (!strcmp(name, "product_fits")) {
		*r = truth(x, product_exact(x, simple(x, Z3_mk_concat(x->z, a[1], a[0])),
					    simple(x, Z3_mk_concat(x->z, a[3], a[2]))));
	} else if (!strcmp(name, "symbolic")) {
		*r = number(x, 1, 1);
	} else if (!strcmp(name, "tiny")) {
		*r = number(x, 0, 1);
	} else if (!strcmp(name, "thorough")) {
		*r = number(x, x->thorough, 1);
	} else {
		return false;
	}
	return true;
}

static term minimum(struct exec *x, const char *which, term a, term b)
{
	Z3_context z = x->z;
	term less = which[0] == 'u' ? Z3_mk_bvult(z, a, b) : Z3_mk_bvslt(z, a, b);

	return simple(x, which[2] == 'i' ? Z3_mk_ite(z, less, a, b) : Z3_mk_ite(z, less, b, a));
}

/* Zeros above the highest (or below the lowest) one. */
static term count_zeros(struct exec *x, term a, bool leading)
{
	unsigned w = width_of(x, a);
	term r = number(x, w, w);

	for (unsigned i = 0; i < w; i++) {
		unsigned bit = leading ? i : w - 1 - i;
		term one = Z3_mk_eq(x->z, Z3_mk_extract(x->z, bit, bit, a), number(x, 1, 1));

		r = Z3_mk_ite(x->z, one, number(x, leading ? w - 1 - bit : bit, w), r);
	}
	return simple(x, r);
}

static term with_overflow(struct exec *x, const char *which, term a, term b)
{
	unsigned w = width_of(x, a);
	bool sign = which[0] == 's';
	term wide_a = resize(x, a, 2 * w, sign), wide_b = resize(x, b, 2 * w, sign), r, low;

	if (!strncmp(which + 1, "add", 3))
		r = simple(x, Z3_mk_bvadd(x->z, wide_a, wide_b));
	else if (!strncmp(which + 1, "sub", 3))
		r = simple(x, Z3_mk_bvsub(x->z, wide_a, wide_b));
	else
		r = multiply(x, wide_a, wide_b);
	low = part(x, r, w - 1, 0);
	r = truth(x, Z3_mk_not(x->z, Z3_mk_eq(x->z, resize(x, low, 2 * w, sign), r)));
	return simple(x, Z3_mk_concat(x->z, r, low));
}

static term run_intrinsic(struct exec *x, const char *name, LLVMValueRef call, term *a)
{
	Z3_context z = x->z;
	uint64_t n = 0;
	term less, equal;

	if (!strncmp(name, "lifetime", 8) || !strncmp(name, "dbg", 3) ||
	    !strncmp(name, "assume", 6) || !strncmp(name, "experimental.noalias", 20))
		return NULL;
	if (!strncmp(name, "mem", 3)) {
		if (!is_number(x, a[2], &n))
			path_fail(x, "a copy of unknown length");
		if (n && name[3] == 's')
			memory_fill(x, settle(x, a[0]), a[1], n);
		else if (n)
			memory_move(x, settle(x, a[0]), settle(x, a[1]), n);
		return NULL;
	}
	if (strstr(name, ".with.overflow"))
		return with_overflow(x, name, a[0], a[1]);
	if (!strncmp(name, "umin", 4) || !strncmp(name, "umax", 4) || !strncmp(name, "smin", 4) ||
	    !strncmp(name, "smax", 4))
		return minimum(x, name, a[0], a[1]);
	if (!strncmp(name, "ctlz", 4) || !strncmp(name, "cttz", 4))
		return count_zeros(x, a[0], name[2] == 'l');
	if (!strncmp(name, "abs", 3)) {
		less = Z3_mk_bvslt(z, a[0], number(x, 0, width_of(x, a[0])));
		return simple(x, Z3_mk_ite(z, less, Z3_mk_bvneg(z, a[0]), a[0]));
	}
	if (!strncmp(name, "usub.sat", 8)) {
		less = Z3_mk_bvult(z, a[0], a[1]);
		return simple(x, Z3_mk_ite(z, less, number(x, 0, width_of(x, a[0])),
					   Z3_mk_bvsub(z, a[0], a[1])));
	}
	if (!strncmp(name, "ucmp", 4) || !strncmp(name, "scmp", 4)) {
		unsigned bits = type_bits(x, LLVMTypeOf(call));

		less = name[0] == 'u' ? Z3_mk_bvult(z, a[0], a[1]) : Z3_mk_bvslt(z, a[0], a[1]);
		equal = Z3_mk_eq(z, a[0], a[1]);
		return simple(
			x, Z3_mk_ite(z, less, number(x, UINT64_MAX, bits),
				     Z3_mk_ite(z, equal, number(x, 0, bits), number(x, 1, bits))));
	}
	if (!strncmp(name, "fshl", 4) || !strncmp(name, "fshr", 4)) {
		unsigned w = width_of(x, a[0]);
		term by = resize(x, Z3_mk_bvurem(z, a[2], number(x, w, w)), 2 * w, false);
		term all = Z3_mk_concat(z, a[0], a[1]);

		return name[3] == 'l' ? part(x, Z3_mk_bvshl(z, all, by), 2 * w - 1, w)
				      : part(x, Z3_mk_bvlshr(z, all, by), w - 1, 0);
	}
	if (!strncmp(name, "trap", 4) || !strncmp(name, "ubsantrap", 9))
		prove(x, Z3_mk_false(z), "that no trap is reached");
	path_fail(x, "llvm.%s is not handled", name);
}

term run_builtin(struct exec *x, const char *name, LLVMValueRef call, term *a)
{
	term r = NULL;

	if (!strncmp(name, "llvm.", 5))
		return run_intrinsic(x, name + 5, call, a);
	if (!strcmp(name, "memcpy") || !strcmp(name, "memmove")) {
		run_intrinsic(x, "memcpy", call, a);
		return a[0];
	}
	if (!run_rule_call(x, name, a, &r))
		path_fail(x, "%s has no body", name);
	return r;
}
