/* SPDX-License-Identifier: MIT */
/*
 * How a state includes another: what the last pass of the fixpoint, the sweep and the rounds of a
 * loop rest on. Ties between locations (state.c) and relations of two numbers (relations.c), each
 * with what must be found and, next to it, what must not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "verifier/prover/state/state.h"
#include "verifier/prover/transfer/analysis.h"

static struct fay_state *outer, *inner;

static int create(void **state)
{
	(void)state;
	outer = fay_state_create(FAY_MAX_LOCATIONS);
	inner = fay_state_create(FAY_MAX_LOCATIONS);
	return !outer || !inner;
}

static int release(void **state)
{
	(void)state;
	free(outer);
	free(inner);
	return 0;
}

static void fresh(void)
{
	fay_state_entry(outer);
	fay_state_entry(inner);
}

/* Location i of s is a number in [low, high], and equals the one named `id`, plus delta. */
static void number(struct fay_state *s, uint32_t i, int64_t low, int64_t high, uint32_t id,
		   uint64_t delta)
{
	s->loc[i] = fay_value_scalar(fay_scalar_srange(low, high));
	s->loc[i].id = id;
	s->loc[i].delta = delta;
	if (s->next_id <= id)
		s->next_id = id + 1;
}

/* Names of the outer state are canonical: 1 + the first location that bears the name. */
#define NAMED(location) (1 + (location))
#define X 1000u
#define Y 1001u

/* ---- ties ---- */

/* outer: rcx = rax + delta, both in [-100, 100]. */
static void tied(uint64_t delta)
{
	fresh();
	number(outer, FAY_RAX, -100, 100, NAMED(FAY_RAX), 0);
	number(outer, FAY_RCX, -100, 100, NAMED(FAY_RAX), delta);
}

static bool tie_holds(int64_t low_a, int64_t high_a, uint32_t id_a, uint64_t delta_a, int64_t low_c,
		      int64_t high_c, uint32_t id_c, uint64_t delta_c)
{
	number(inner, FAY_RAX, low_a, high_a, id_a, delta_a);
	number(inner, FAY_RCX, low_c, high_c, id_c, delta_c);
	return fay_state_includes(outer, inner);
}

static void one_name_at_the_distance(void **state)
{
	(void)state;
	tied(3);
	assert_true(tie_holds(0, 5, X, 0, 3, 8, X, 3));
	assert_true(tie_holds(0, 5, X, 7, 3, 8, X, 10));
	assert_false(tie_holds(0, 5, X, 0, 3, 8, X, 4));
	assert_false(tie_holds(0, 5, X, 3, 3, 8, X, 0));
	assert_false(tie_holds(0, 5, X, 0, 3, 8, Y, 3));
	tied(UINT64_MAX); /* less one */
	assert_true(tie_holds(0, 5, X, 0, -1, 4, X, UINT64_MAX));
	assert_true(tie_holds(0, 5, X, 1, -1, 4, X, 0));
	assert_false(tie_holds(0, 5, X, 0, -1, 4, X, 1));
}

static void constants_are_their_own_names(void **state)
{
	(void)state;
	tied(3);
	assert_true(tie_holds(5, 5, X, 0, 8, 8, Y, 0));
	assert_true(tie_holds(-3, -3, X, 0, 0, 0, Y, 0));
	assert_false(tie_holds(5, 5, X, 0, 9, 9, Y, 0));
	assert_false(tie_holds(8, 8, X, 0, 5, 5, Y, 0));
	/* one of them only */
	assert_false(tie_holds(5, 5, X, 0, 3, 8, Y, 0));
	assert_false(tie_holds(0, 5, X, 0, 8, 8, Y, 0));
	/* A branch showed one to be a constant; the other, still an interval, has the name that
	 * both had. */
	assert_true(tie_holds(5, 5, X, 0, 3, 8, X, 3));
	assert_false(tie_holds(5, 5, X, 0, 3, 8, X, 2));
	assert_true(tie_holds(0, 5, X, 0, 8, 8, X, 3));
	assert_false(tie_holds(0, 5, X, 0, 8, 8, X, UINT64_MAX - 2));
	/* Constants on the outer side say it themselves. */
	fresh();
	number(outer, FAY_RAX, 1, 1, NAMED(FAY_RAX), 0);
	number(outer, FAY_RCX, 4, 4, NAMED(FAY_RAX), 3);
	assert_true(tie_holds(1, 1, X, 0, 4, 4, Y, 0));
	assert_false(tie_holds(1, 1, X, 0, 5, 5, X, 4));
	/* Unless they are tied otherwise: no execution has both, and one that has these constants
	 * is not described. */
	number(outer, FAY_RCX, 4, 4, NAMED(FAY_RAX), 2);
	assert_false(tie_holds(1, 1, X, 0, 4, 4, Y, 0));
	assert_false(tie_holds(1, 1, X, 0, 4, 4, X, 3));
	assert_true(tie_holds(1, 1, X, 0, 4, 4, X, 2));
}

static void nothing_is_asked_of_the_first_bearer(void **state)
{
	(void)state;
	fresh();
	number(outer, FAY_RAX, -100, 100, NAMED(FAY_RAX), 0);
	number(outer, FAY_RCX, -100, 100, NAMED(FAY_RCX), 0);
	assert_true(tie_holds(0, 5, X, 0, 3, 8, X, 3));
	assert_true(tie_holds(0, 5, X, 0, 3, 8, Y, 0));
}

static void slots_and_pointers_are_tied_alike(void **state)
{
	struct fay_value v;

	(void)state;
	for (unsigned right = 0; right < 2; right++) {
		fresh();
		fay_state_set_depth(outer, 16);
		fay_state_set_depth(inner, 16);
		number(outer, FAY_RAX, 0, 100, NAMED(FAY_RAX), 0);
		number(inner, FAY_RAX, 0, 100, X, 0);
		v = outer->loc[FAY_RAX];
		v.delta = 8;
		assert_int_equal(fay_stack_store(outer, -8, 8, &v), SLOT_OK);
		v = inner->loc[FAY_RAX];
		v.delta = right ? 8 : 7;
		assert_int_equal(fay_stack_store(inner, -8, 8, &v), SLOT_OK);
		assert_int_equal(fay_state_includes(outer, inner), right);
		/* A pointer that is as far from its region as a number is large. */
		fresh();
		number(outer, FAY_RAX, 0, 32, NAMED(FAY_RAX), 0);
		number(outer, FAY_RCX, 0, 32, NAMED(FAY_RAX), 0);
		number(inner, FAY_RAX, 0, 32, X, 0);
		number(inner, FAY_RCX, 0, 32, right ? X : Y, 0);
		outer->loc[FAY_RCX].kind = inner->loc[FAY_RCX].kind = KIND_POINTER;
		outer->loc[FAY_RCX].tag = inner->loc[FAY_RCX].tag = REGION_LOCAL;
		assert_int_equal(fay_state_includes(outer, inner), right);
	}
}

/* ---- relations ---- */

static void relate(struct fay_state *s, uint32_t x, uint64_t dx, int64_t a, uint32_t y, uint64_t dy,
		   int64_t b, int64_t lo, int64_t hi)
{
	s->relations[s->relation_count++] = (struct fay_relation){
		.x = x, .y = y, .dx = dx, .dy = dy, .a = a, .b = b, .lo = lo, .hi = hi
	};
}

/* outer: lo <= a * (rax + dx) + b * rcx <= hi. */
static void related(uint64_t dx, int64_t a, int64_t b, int64_t lo, int64_t hi)
{
	fresh();
	number(outer, FAY_RAX, INT64_MIN, INT64_MAX, NAMED(FAY_RAX), 0);
	number(outer, FAY_RCX, INT64_MIN, INT64_MAX, NAMED(FAY_RCX), 0);
	relate(outer, NAMED(FAY_RAX), dx, a, NAMED(FAY_RCX), 0, b, lo, hi);
	number(inner, FAY_RAX, INT64_MIN, INT64_MAX, X, 0);
	number(inner, FAY_RCX, INT64_MIN, INT64_MAX, Y, 0);
}

static void a_relation_by_a_relation(void **state)
{
	(void)state;
	related(0, 1, -1, INT64_MIN, 0);
	assert_false(fay_relations_include(outer, inner));
	relate(inner, X, 0, 1, Y, 0, -1, INT64_MIN, 1);
	assert_false(fay_relations_include(outer, inner));
	inner->relations[0].hi = 0;
	assert_true(fay_relations_include(outer, inner));
	inner->relations[0].hi = -1;
	assert_true(fay_relations_include(outer, inner));
	/* the other end */
	inner->relations[0] =
		(struct fay_relation){ .x = X, .y = Y, .a = 1, .b = -1, .lo = 0, .hi = INT64_MAX };
	assert_false(fay_relations_include(outer, inner));
	related(0, 1, -1, 2, 9);
	relate(inner, X, 0, 1, Y, 0, -1, 2, 10);
	assert_false(fay_relations_include(outer, inner));
	inner->relations[0].hi = 9;
	assert_true(fay_relations_include(outer, inner));
	inner->relations[0].lo = 1;
	assert_false(fay_relations_include(outer, inner));
	/* Said of the same two the other way round. */
	inner->relations[0] =
		(struct fay_relation){ .x = X, .y = Y, .a = -1, .b = 1, .lo = -9, .hi = -2 };
	assert_true(fay_relations_include(outer, inner));
	inner->relations[0].hi = -1;
	assert_false(fay_relations_include(outer, inner));
}

static void a_relation_is_of_its_own_two(void **state)
{
	(void)state;
	/* factors */
	related(0, 8, -1, INT64_MIN, 0);
	relate(inner, X, 0, 1, Y, 0, -1, INT64_MIN, 0);
	assert_false(fay_relations_include(outer, inner));
	inner->relations[0].a = 8;
	assert_true(fay_relations_include(outer, inner));
	inner->relations[0].b = 1;
	assert_false(fay_relations_include(outer, inner));
	/* names: rax's and rcx's exchanged, or another's */
	related(0, 1, -1, INT64_MIN, 0);
	relate(inner, Y, 0, 1, X, 0, -1, INT64_MIN, 0);
	assert_false(fay_relations_include(outer, inner));
	inner->relations[0] = (struct fay_relation){
		.x = X, .y = Y + 1, .a = 1, .b = -1, .lo = INT64_MIN, .hi = 0
	};
	assert_false(fay_relations_include(outer, inner));
}

static void a_relation_by_intervals_and_names(void **state)
{
	(void)state;
	related(0, 1, -1, INT64_MIN, 0);
	number(inner, FAY_RAX, 0, 3, X, 0);
	number(inner, FAY_RCX, 3, 9, Y, 0);
	assert_true(fay_relations_include(outer, inner));
	number(inner, FAY_RCX, 2, 9, Y, 0);
	assert_false(fay_relations_include(outer, inner));
	/* One name: their distance says it, if neither end wraps. */
	number(inner, FAY_RAX, 0, 50, X, 0);
	number(inner, FAY_RCX, 1, 51, X, 1);
	assert_true(fay_relations_include(outer, inner));
	number(inner, FAY_RCX, -1, 49, X, UINT64_MAX);
	assert_false(fay_relations_include(outer, inner));
	number(inner, FAY_RAX, INT64_MIN, INT64_MAX, X, 0);
	number(inner, FAY_RCX, INT64_MIN, INT64_MAX, X, 1);
	assert_false(fay_relations_include(outer, inner));
}

static void a_relation_at_a_distance(void **state)
{
	(void)state;
	/* rax + 2 <= rcx, by an inner relation of rax itself: moved where rax + 2 cannot wrap. */
	related(2, 1, -1, INT64_MIN, 0);
	relate(inner, X, 0, 1, Y, 0, -1, INT64_MIN, -2);
	number(inner, FAY_RAX, 0, 1000, X, 0);
	assert_true(fay_relations_include(outer, inner));
	inner->relations[0].hi = -1;
	assert_false(fay_relations_include(outer, inner));
	/* rax + 2 >= rcx, and rax may be so large that rax + 2 is negative. */
	related(2, 1, -1, 0, INT64_MAX);
	relate(inner, X, 0, 1, Y, 0, -1, -2, INT64_MAX);
	number(inner, FAY_RAX, 0, INT64_MAX - 2, X, 0);
	assert_true(fay_relations_include(outer, inner));
	number(inner, FAY_RAX, 0, INT64_MAX - 1, X, 0);
	assert_false(fay_relations_include(outer, inner));
	/* Where it may wrap: by what the inner state says of another location that is rax + 2 in
	 * the outer one. */
	related(2, 1, -1, INT64_MIN, 0);
	number(outer, FAY_R8, INT64_MIN, INT64_MAX, NAMED(FAY_RAX), 2);
	number(inner, FAY_R8, INT64_MIN, INT64_MAX, X, 2);
	relate(inner, X, 2, 1, Y, 0, -1, INT64_MIN, 0);
	assert_true(fay_relations_include(outer, inner));
	inner->relations[0].hi = 1;
	assert_false(fay_relations_include(outer, inner));
	inner->relations[0].hi = 0;
	inner->relations[0].dx = 3;
	assert_false(fay_relations_include(outer, inner));
	/* The same by that location's interval. */
	inner->relation_count = 0;
	number(inner, FAY_R8, 0, 5, X, 2);
	number(inner, FAY_RCX, 5, 9, Y, 0);
	assert_true(fay_relations_include(outer, inner));
	number(inner, FAY_R8, 0, 6, X, 2);
	assert_false(fay_relations_include(outer, inner));
	/* The other side's distance. */
	related(0, 1, -1, INT64_MIN, 0);
	outer->relations[0].dy = (uint64_t)-5;
	relate(inner, X, 0, 1, Y, 0, -1, INT64_MIN, 0);
	number(inner, FAY_RCX, -1000, 1000, Y, 0);
	assert_false(fay_relations_include(outer, inner));
	inner->relations[0].hi = -5;
	assert_true(fay_relations_include(outer, inner));
	fresh();
	number(outer, FAY_RAX, INT64_MIN, INT64_MAX, NAMED(FAY_RAX), 0);
	number(outer, FAY_RCX, INT64_MIN, INT64_MAX, NAMED(FAY_RCX), 0);
	number(outer, FAY_R9, INT64_MIN, INT64_MAX, NAMED(FAY_RCX), 5);
	relate(outer, NAMED(FAY_RAX), 0, 1, NAMED(FAY_RCX), 5, -1, INT64_MIN, 0);
	number(inner, FAY_RAX, INT64_MIN, INT64_MAX, X, 0);
	number(inner, FAY_RCX, INT64_MIN, INT64_MAX, Y, 0);
	number(inner, FAY_R9, INT64_MIN, INT64_MAX, Y, 5);
	relate(inner, X, 0, 1, Y, 5, -1, INT64_MIN, 0);
	assert_true(fay_relations_include(outer, inner));
	inner->relations[0].dy = 4;
	assert_false(fay_relations_include(outer, inner));
}

static void a_relation_of_what_is_no_number(void **state)
{
	(void)state;
	related(0, 1, -1, INT64_MIN, INT64_MAX - 1);
	relate(inner, X, 0, 1, Y, 0, -1, INT64_MIN, 0);
	assert_true(fay_relations_include(outer, inner));
	inner->loc[FAY_RCX] = fay_value_uninit();
	assert_false(fay_relations_include(outer, inner));
	number(inner, FAY_RCX, 0, 0, Y, 0);
	inner->loc[FAY_RAX].init = 0x7f;
	assert_false(fay_relations_include(outer, inner));
	number(inner, FAY_RAX, 0, 0, X, 0);
	assert_true(fay_relations_include(outer, inner));
	outer->relations[0].y = outer->count + 1;
	assert_false(fay_relations_include(outer, inner));
}

/* ---- whatever outer says and inner does not is noticed ---- */

/* Both as at entry, with a frame of 32 bytes and rax the number 5, which rcx is, too; canonical. */
static void two_states(void)
{
	struct fay_state *both[] = { outer, inner };

	fresh();
	for (unsigned i = 0; i < 2; i++) {
		fay_state_set_depth(both[i], 32);
		both[i]->loc[FAY_RAX] = fay_value_scalar(fay_scalar_range(0, 5));
		both[i]->loc[FAY_RAX].id = both[i]->next_id++;
		both[i]->loc[FAY_RCX] = both[i]->loc[FAY_RAX];
		assert_true(fay_state_canonical(both[i]));
	}
}

static void is_refused(void)
{
	assert_false(fay_state_includes(outer, inner));
	two_states();
	assert_true(fay_state_includes(outer, inner));
}

static void store(struct fay_state *s, int64_t offset, unsigned width, struct fay_value v)
{
	assert_int_equal(fay_stack_store(s, offset, width, &v), SLOT_OK);
	assert_true(fay_state_canonical(s));
}

static void inclusion_notices_every_difference(void **state)
{
	struct fay_value pointer = fay_value_scalar(fay_scalar_const(0)),
			 few = fay_value_scalar(fay_scalar_range(0, 5)), entry = fay_value_uninit();

	(void)state;
	pointer.kind = KIND_POINTER;
	pointer.tag = REGION_LOCAL;
	two_states();
	assert_true(fay_state_includes(outer, inner));
	/* kinds and regions */
	inner->loc[FAY_RAX] = pointer;
	is_refused();
	outer->loc[FAY_RSI].tag = REGION_GLOBAL;
	is_refused();
	inner->loc[FAY_RBX].tag = FAY_RBP;
	is_refused();
	inner->loc[FAY_R8].tag = FAY_R9;
	is_refused();
	inner->loc[FAY_RAX] = fay_value_uninit();
	is_refused();
	/* numbers, initialised bytes, names */
	inner->loc[FAY_RAX].s = inner->loc[FAY_RCX].s = fay_scalar_range(0, 6);
	is_refused();
	inner->loc[FAY_RAX].init = 0x7f;
	is_refused();
	inner->loc[FAY_RCX].id = inner->next_id++;
	is_refused();
	inner->loc[FAY_RCX].delta = 1;
	is_refused();
	/* depth, flags, vectors */
	fay_state_set_depth(inner, 24);
	is_refused();
	outer->flags_undefined = 0;
	is_refused();
	outer->vectors[3] = 1;
	is_refused();
	for (unsigned which = 0; which < 4; which++) {
		struct fay_state *both[] = { outer, inner };

		for (unsigned i = 0; i < 2; i++) {
			both[i]->record = RECORD_LOGIC;
			both[i]->flags_width = 64;
			both[i]->flags_covered = FLAG_ZF | FLAG_SF;
		}
		assert_true(fay_state_includes(outer, inner));
		if (which == 0)
			inner->record = RECORD_RESULT;
		else if (which == 1)
			inner->flags_width = 32;
		else if (which == 2)
			inner->flags_covered = FLAG_ZF;
		else
			inner->carry_inverted = true;
		is_refused();
	}
	/* stack slots: what was not written, widths, what a pop gives back */
	store(outer, -8, 8, few);
	is_refused();
	store(outer, -8, 8, few);
	store(inner, -8, 4, few);
	store(inner, -4, 4, few);
	is_refused();
	entry.tag = FAY_R8;
	store(outer, -16, 8, entry);
	store(inner, -16, 8, few);
	is_refused();
	store(outer, -16, 8, entry);
	entry.tag = FAY_R9;
	store(inner, -16, 8, entry);
	is_refused();
	/* relations */
	outer->relations[outer->relation_count++] = (struct fay_relation){
		.x = 1 + FAY_RAX, .y = 1 + FAY_RSI, .a = 1, .b = -1, .lo = INT64_MIN, .hi = 2
	};
	is_refused();
	outer->fills[outer->fill_count++] =
		(struct fay_fill){ .x = 1 + FAY_RAX, .step = 8, .fixed = -32, .moving = -24 };
	is_refused();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inclusion_notices_every_difference),
		cmocka_unit_test(one_name_at_the_distance),
		cmocka_unit_test(constants_are_their_own_names),
		cmocka_unit_test(nothing_is_asked_of_the_first_bearer),
		cmocka_unit_test(slots_and_pointers_are_tied_alike),
		cmocka_unit_test(a_relation_by_a_relation),
		cmocka_unit_test(a_relation_is_of_its_own_two),
		cmocka_unit_test(a_relation_by_intervals_and_names),
		cmocka_unit_test(a_relation_at_a_distance),
		cmocka_unit_test(a_relation_of_what_is_no_number),
	};

	return cmocka_run_group_tests(tests, create, release);
}
