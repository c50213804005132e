/* SPDX-License-Identifier: MIT */
/*
 * Stack arrays that loops have written up to a counter: "all bytes of [fixed, moving + step * S(x))
 * were written" or, where the loop goes down, "of [moving + step * S(x), fixed)". x is a name, S
 * the signed reading, and the ends are offsets from rsp at entry.
 *
 * A name stands for one number as long as its state lives, so a range stays true until bytes of it
 * cease to be written numbers: when something that is not a wholly written number is stored there,
 * or rsp is raised above them (fay_fills_forget). A store of a number to [moving + step * S(x), +
 * size) makes the range longer. Ranges begin as guesses where a loop's head is reached for the
 * second time: a counter went from one constant to another and some bytes were written meanwhile. A
 * join keeps a range only if both sides show it, and the last pass of the fixpoint checks each as
 * it checks intervals: at the loop's entry it is empty, or its bytes were written before.
 *
 * Distances of a name are moved (S(x + 1) against S(x)) only where the counter's interval is so
 * small that nothing wraps.
 */
#include "state.h"

#include <string.h>

#define SMALL FAY_FAR_APART
#define STEP_MOST 64 /* bytes that one step of the counter may stand for */
#define BEARERS 3u
#define GUESSES 3u /* counters tried for one range */

static bool small(int64_t x)
{
	return x > -SMALL && x < SMALL;
}
static bool is_flags(uint32_t i)
{
	return i >= LOC_FLAGS_A && i <= LOC_FLAGS_R;
}
static bool counts(const struct fay_value *v)
{
	return fay_value_numeric(v) && v->init == 0xff && v->id;
}
static bool bounded(const struct fay_value *v)
{
	return small(v->s.smin) && small(v->s.smax);
}

static int64_t depth_of(const struct fay_state *s)
{
	return fay_state_depth(s);
}

/* Whether all bytes of [low, high) were written, by what the slots say. */
static bool written(const struct fay_state *s, int64_t low, int64_t high)
{
	return low >= high ||
	       (low >= -depth_of(s) && high <= 0 && fay_stack_check(s, low, high) == SLOT_OK);
}

/* The signed bounds of x + dx, from all that bear the name. */
static bool bounds_of(const struct fay_state *s, uint32_t x, uint64_t dx, int64_t *low,
		      int64_t *high)
{
	*low = -SMALL;
	*high = SMALL;
	for (uint32_t i = 0; i < s->count; i++) {
		const struct fay_value *v = &s->loc[i];
		int64_t apart = (int64_t)(dx - v->delta);

		if (v->id != x || !counts(v) || !bounded(v) || !small(apart))
			continue;
		*low = v->s.smin + apart > *low ? v->s.smin + apart : *low;
		*high = v->s.smax + apart < *high ? v->s.smax + apart : *high;
	}
	return *low > -SMALL && *high < SMALL && *low <= *high;
}

bool fay_fill_ends(const struct fay_state *s, const struct fay_fill *f, int64_t *least,
		   int64_t *greatest)
{
	int64_t low, high;

	if (!bounds_of(s, f->x, f->dx, &low, &high))
		return false;
	*least = f->moving + f->step * low;
	*greatest = f->moving + f->step * high;
	return true;
}

/* Bytes that hold nothing known become written ones; the rest is numbers already. */
static void mark(struct fay_state *s, int64_t low, int64_t high)
{
	int64_t from = low;

	if (low < -depth_of(s) || high > 0)
		return;
	for (int64_t at = low; at <= high; at++) {
		if (at < high && fay_stack_check(s, at, at + 1) == SLOT_UNINIT)
			continue;
		if (from < at)
			fay_stack_havoc(s, from, at, true);
		from = at + 1;
	}
}

void fay_fills_settle(struct fay_state *s)
{
	for (uint32_t i = 0; i < s->fill_count; i++) {
		const struct fay_fill *f = &s->fills[i];
		int64_t least, greatest;

		if (!fay_fill_ends(s, f, &least, &greatest))
			continue;
		if (f->down)
			mark(s, greatest, f->fixed);
		else
			mark(s, f->fixed, least);
	}
}

void fay_fills_forget(struct fay_state *s, int64_t low, int64_t high)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->fill_count; i++) {
		const struct fay_fill *f = &s->fills[i];
		int64_t least, greatest;

		if (fay_fill_ends(s, f, &least, &greatest) &&
		    (f->down ? high <= least || low >= f->fixed
			     : high <= f->fixed || low >= greatest))
			s->fills[kept++] = *f;
	}
	s->fill_count = kept;
}

/* at's offset as a constant plus f->step * S(f->x + f->dx). */
static bool against(const struct fay_fill *f, const struct fay_place *at, int64_t *constant)
{
	int64_t apart = (int64_t)(at->value.delta - f->dx);

	if (!at->step || at->step != f->step || !counts(&at->value) || at->value.id != f->x ||
	    !bounded(&at->value) || !small(apart))
		return false;
	*constant = at->fixed + at->step * apart;
	return true;
}

void fay_fills_store(struct fay_state *s, const struct fay_place *at, unsigned size)
{
	for (uint32_t i = 0; i < s->fill_count; i++) {
		struct fay_fill *f = &s->fills[i];
		int64_t low;

		if (!against(f, at, &low) || low > f->moving || low + size < f->moving)
			continue;
		f->moving = f->down ? low : low + size;
	}
}

bool fay_fills_cover(const struct fay_state *s, const struct fay_place *at, unsigned size,
		     int64_t low)
{
	for (uint32_t i = 0; i < s->fill_count; i++) {
		const struct fay_fill *f = &s->fills[i];
		int64_t constant;

		if (f->down || !against(f, at, &constant) || constant + size > f->moving)
			continue;
		if (low >= f->fixed || written(s, low, f->fixed))
			return true;
	}
	return false;
}

/* ---- joins and inclusion ---- */

/* Whether s shows f, whose counter is v there. */
static bool shown(const struct fay_state *s, const struct fay_fill *f, const struct fay_value *v)
{
	int64_t least, greatest;

	if (!fay_value_numeric(v) || v->init != 0xff || !bounded(v))
		return false;
	least = f->moving + f->step * v->s.smin;
	greatest = f->moving + f->step * v->s.smax;
	if (f->down ? written(s, least, f->fixed) : written(s, f->fixed, greatest))
		return true;
	for (uint32_t i = 0; i < s->fill_count; i++) {
		const struct fay_fill *own = &s->fills[i];
		struct fay_place at = { .value = *v, .fixed = f->moving, .step = f->step };
		int64_t end;

		if (own->down != f->down || !against(own, &at, &end))
			continue;
		if (f->down ? end >= own->moving && written(s, own->fixed, f->fixed)
			    : end <= own->moving && written(s, f->fixed, own->fixed))
			return true;
	}
	return false;
}

static void offer(struct fay_fill_join *join, const struct fay_state *a, const struct fay_state *b,
		  uint32_t location, struct fay_fill f)
{
	f.x = 0;
	f.dx = 0;
	for (uint32_t i = 0; i < join->count; i++)
		if (join->list[i].location == location && join->list[i].fill.step == f.step &&
		    join->list[i].fill.down == f.down)
			return;
	if (join->count == FAY_MAX_FILLS || !shown(a, &f, &a->loc[location]) ||
	    !shown(b, &f, &b->loc[location]))
		return;
	join->list[join->count].location = location;
	join->list[join->count++].fill = f;
}

static void offer_all(struct fay_fill_join *join, const struct fay_state *of,
		      const struct fay_state *a, const struct fay_state *b)
{
	for (uint32_t k = 0; k < of->fill_count; k++) {
		const struct fay_fill *f = &of->fills[k];
		unsigned found = 0;

		for (uint32_t i = 0; i < of->count && found < BEARERS; i++) {
			int64_t apart = (int64_t)(f->dx - of->loc[i].delta);
			struct fay_fill moved = *f;

			if (of->loc[i].id != f->x || !counts(&of->loc[i]) || is_flags(i) ||
			    !small(apart))
				continue;
			moved.moving += f->step * apart;
			offer(join, a, b, i, moved);
			found++;
		}
	}
}

static bool candidate(const struct fay_value *x, const struct fay_value *y)
{
	return counts(x) && counts(y) && x->kind == y->kind && fay_scalar_is_const(&x->s) &&
	       fay_scalar_is_const(&y->s) && bounded(x) && bounded(y);
}

/* A counter that is one number on each side, while the bytes of [low, high) were written on b's
 * only. */
static void guess_range(struct fay_fill_join *join, const struct fay_state *a,
			const struct fay_state *b, int64_t low, int64_t high)
{
	int64_t bottom = low, top = high;
	uint32_t before = join->count;

	while (bottom > -depth_of(a) && written(a, bottom - 1, bottom) &&
	       written(b, bottom - 1, bottom))
		bottom--;
	while (top < 0 && written(a, top, top + 1) && written(b, top, top + 1))
		top++;
	for (uint32_t i = 0; i < a->count && join->count < before + GUESSES; i++) {
		const struct fay_value *x = &a->loc[i], *y = &b->loc[i];
		struct fay_fill f = { 0 };
		int64_t moved;

		if (is_flags(i) || !candidate(x, y))
			continue;
		moved = y->s.smin - x->s.smin;
		f.down = moved < 0;
		moved = f.down ? -moved : moved;
		if (!moved || (high - low) % moved || (high - low) / moved > STEP_MOST)
			continue;
		f.step = (high - low) / moved;
		f.fixed = f.down ? top : bottom;
		f.moving = (f.down ? high : low) - f.step * x->s.smin;
		offer(join, a, b, i, f);
	}
}

/* Whether of the four bytes at `at`, a slot, both states say the same. */
static bool as_written(const struct fay_state *a, const struct fay_state *b, int64_t at)
{
	uint32_t i = LOC_SLOTS + (uint32_t)(-at / 4) - 1;

	if (a->loc[i].kind == KIND_UPPER && b->loc[i].kind == KIND_UPPER && i + 1 < a->count)
		i++;
	return a->loc[i].kind == b->loc[i].kind && a->loc[i].init == b->loc[i].init;
}

static void guess(struct fay_fill_join *join, const struct fay_state *a, const struct fay_state *b)
{
	int64_t low = 0;
	bool within = false, moved = false;

	for (uint32_t i = 0; i < a->count && !moved; i++)
		moved = !is_flags(i) && candidate(&a->loc[i], &b->loc[i]) &&
			a->loc[i].s.smin != b->loc[i].s.smin;
	if (!moved)
		return;
	for (int64_t at = -depth_of(a); at <= 0 && join->count < FAY_MAX_FILLS; at++) {
		bool news;

		if (!within && !(at & 3) && at < 0 && as_written(a, b, at)) {
			at += 3;
			continue;
		}
		news = at < 0 && fay_stack_check(b, at, at + 1) == SLOT_OK &&
		       fay_stack_check(a, at, at + 1) == SLOT_UNINIT;
		if (news && !within)
			low = at;
		if (!news && within)
			guess_range(join, a, b, low, at);
		within = news;
	}
}

void fay_fills_gather(struct fay_fill_join *join, const struct fay_state *a,
		      const struct fay_state *b, const struct fay_join_plan *plan)
{
	join->count = 0;
	if (a->fill_count)
		offer_all(join, a, a, b);
	if (b->fill_count && !plan->settle)
		offer_all(join, b, a, b);
	if (plan->guess_fills)
		guess(join, a, b);
}

void fay_fills_scatter(const struct fay_fill_join *join, struct fay_state *joined)
{
	joined->fill_count = 0;
	for (uint32_t i = 0; i < join->count; i++) {
		const struct fay_value *v = &joined->loc[join->list[i].location];
		struct fay_fill f = join->list[i].fill;

		/* Of a constant all is in the slots already. */
		if (!counts(v) || fay_scalar_is_const(&v->s) || !bounded(v) ||
		    !small((int64_t)v->delta))
			continue;
		f.x = v->id;
		f.moving += f.step * (int64_t)v->delta; /* of the leader, at distance 0 */
		if (bounds_of(joined, f.x, 0, &(int64_t){ 0 }, &(int64_t){ 0 }))
			joined->fills[joined->fill_count++] = f;
	}
}

bool fay_fills_include(const struct fay_state *outer, const struct fay_state *inner)
{
	for (uint32_t i = 0; i < outer->fill_count; i++) {
		const struct fay_fill *f = &outer->fills[i];

		if (f->dx || f->x > outer->count || !shown(inner, f, &inner->loc[f->x - 1]))
			return false;
	}
	return true;
}
