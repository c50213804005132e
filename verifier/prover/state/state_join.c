/* SPDX-License-Identifier: MIT */
/*
 * Names and joins of states. Locations that keep one distance on both sides of a join have one name
 * after it; a stored state's names are canonical: 1 + the first location that bears the name.
 */
#include <stdlib.h>
#include <string.h>

#include "state.h"
#include "state_parts.h"

/* ---- names ---- */

struct class
{
	uint32_t a, b, leader; /* leader: 1 + location */
	uint64_t apart, leader_delta;
};

/* A hash table with one class a location at most. */
struct classes {
	uint32_t mask, count;
	struct class *list;
	uint16_t index[]; /* 1 + place in the list, 0 empty */
};
_Static_assert(FAY_MAX_LOCATIONS < UINT16_MAX, "an index holds the number of any class");

/* Room for the table of a state of ordinary size, as the caller's variable. */
struct small_classes {
	_Alignas(struct class) char bytes[sizeof(struct classes) + 128 * sizeof(uint16_t) +
					  64 * sizeof(struct class)];
};

/* In `small`, if it fits; to be released with classes_release(). NULL: out of memory. */
static struct classes *classes_create(uint32_t locations, struct small_classes *small)
{
	uint32_t size = 64;
	size_t head;
	struct classes *c;

	while (size < 2 * locations)
		size *= 2;
	head = sizeof(*c) + size * sizeof(c->index[0]);
	c = head + locations * sizeof(c->list[0]) <= sizeof(*small)
		    ? (struct classes *)small->bytes
		    : malloc(head + locations * sizeof(c->list[0]));
	if (c) {
		memset(c, 0, head);
		c->mask = size - 1;
		c->list = (struct class *)((char *)c + head);
	}
	return c;
}

static void classes_release(struct classes *c, struct small_classes *small)
{
	if ((char *)c != small->bytes)
		free(c);
}

static uint64_t class_hash(uint32_t a, uint32_t b, uint64_t apart)
{
	uint64_t h = ((uint64_t)a << 32 | b) * 0x9e3779b97f4a7c15u ^ apart * 0xff51afd7ed558ccdu;

	return h ^ h >> 29;
}

/* The class of (a, b, apart); a new one is led by `location`. */
static struct class *class_of(struct classes *c, uint32_t a, uint32_t b, uint64_t apart,
			      uint32_t location, uint64_t delta)
{
	uint64_t h = class_hash(a, b, apart);
	struct class *e;

	for (h &= c->mask; c->index[h]; h = (h + 1) & c->mask) {
		e = &c->list[c->index[h] - 1];
		if (e->a == a && e->b == b && e->apart == apart)
			return e;
	}
	e = &c->list[c->count++];
	c->index[h] = (uint16_t)c->count;
	*e = (struct class){
		.a = a, .b = b, .apart = apart, .leader = location + 1, .leader_delta = delta
	};
	return e;
}

static void name_apart(struct fay_value *v, uint32_t location)
{
	v->id = location + 1;
	v->delta = 0;
}

/* The class that has the name `id`; NULL: nobody bears it. */
static const struct class *class_find(const struct classes *c, uint32_t id)
{
	for (uint64_t h = class_hash(id, 0, 0) & c->mask; c->index[h]; h = (h + 1) & c->mask) {
		const struct class *e = &c->list[c->index[h] - 1];

		if (e->a == id && e->b == 0 && e->apart == 0)
			return e;
	}
	return NULL;
}

/* Whether it is only what the flags were made of. */
static bool only_flags(const struct fay_state *s, uint32_t id)
{
	if (id - 1 < LOC_FLAGS_A || id - 1 > LOC_FLAGS_R)
		return false;
	for (uint32_t i = LOC_SLOTS; i < s->count; i++)
		if (s->loc[i].id == id && fay_value_numeric(&s->loc[i]))
			return false;
	return true;
}

/* Relations of names that are gone are dropped, the others renamed. */
static void rename_relations(struct fay_state *s, const struct classes *c)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->relation_count; i++) {
		struct fay_relation r = s->relations[i];
		const struct class *x = class_find(c, r.x), *y = class_find(c, r.y);

		if (!x || !y || only_flags(s, x->leader) || only_flags(s, y->leader))
			continue;
		r.x = x->leader;
		r.y = y->leader;
		r.dx -= x->leader_delta;
		r.dy -= y->leader_delta;
		s->relations[kept++] = r;
	}
	s->relation_count = kept;
	fay_relations_settle(s);
}

/* The same for what loops have written; measured from the names themselves. */
static void rename_fills(struct fay_state *s, const struct classes *c)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->fill_count; i++) {
		struct fay_fill f = s->fills[i];
		const struct class *x = class_find(c, f.x);
		int64_t least, greatest, apart;

		if (!x || only_flags(s, x->leader))
			continue;
		apart = (int64_t)(f.dx - x->leader_delta);
		f.x = x->leader;
		f.dx = 0;
		if (apart <= -FAY_FAR_APART || apart >= FAY_FAR_APART)
			continue;
		f.moving += f.step * apart;
		if (fay_fill_ends(s, &f, &least, &greatest))
			s->fills[kept++] = f;
	}
	s->fill_count = kept;
}

static void forget_record(struct fay_state *s)
{
	s->record = RECORD_NONE;
	s->flags_covered = 0;
	for (unsigned i = LOC_FLAGS_A; i <= LOC_FLAGS_R; i++)
		s->loc[i] = fay_value_uninit();
}

bool fay_state_canonical(struct fay_state *s)
{
	struct small_classes small;
	struct classes *c = classes_create(s->count, &small);

	if (!c)
		return false;
	fay_fills_settle(s);
	if (s->record == RECORD_NONE)
		forget_record(s);
	for (uint32_t i = 0; i < s->count; i++) {
		struct fay_value *v = &s->loc[i];

		if (v->id && fay_value_numeric(v) && v->init == 0xff) {
			struct class *e = class_of(c, v->id, 0, 0, i, v->delta);

			v->delta -= e->leader_delta;
			v->id = e->leader;
		} else {
			name_apart(v, i);
		}
	}
	s->next_id = s->count + 1;
	if (s->relation_count)
		rename_relations(s, c);
	if (s->fill_count)
		rename_fills(s, c);
	classes_release(c, &small);
	return true;
}

/* ---- join ---- */

/* Makes 8-byte slots of both states lie alike. */
static void align_slots(struct fay_state *a, struct fay_state *b)
{
	for (uint32_t i = LOC_SLOTS; i < a->count; i++) {
		if ((a->loc[i].kind == KIND_UPPER) == (b->loc[i].kind == KIND_UPPER))
			continue;
		if (a->loc[i].kind == KIND_UPPER)
			fay_state_split_slot(a, i);
		else
			fay_state_split_slot(b, i);
	}
}

static void value_join(struct fay_value *a, const struct fay_value *b)
{
	if (a->kind == KIND_UNINIT || b->kind == KIND_UNINIT) {
		uint8_t tag = a->kind == b->kind && a->tag == b->tag ? a->tag : TAG_NONE,
			size = a->size;

		*a = fay_value_uninit();
		a->tag = tag;
		a->size = size;
		return;
	}
	if (a->kind != b->kind || a->tag != b->tag) {
		a->kind = KIND_MIXED;
		a->tag = TAG_NONE;
		a->s = fay_scalar_top();
		return;
	}
	if (fay_value_numeric(a)) {
		if (!fay_scalar_equal(&a->s, &b->s))
			a->s = fay_scalar_join(&a->s, &b->s);
		a->init &= b->init;
		if (!a->init) {
			uint8_t size = a->size;

			*a = fay_value_uninit();
			a->size = size;
		}
	} else if (a->kind == KIND_RETURN && !fay_scalar_equal(&a->s, &b->s)) {
		a->kind = KIND_MIXED;
	}
}

/* Ranking tags: the same origin with the hull of both distances, or none. */
static void origin_join(struct fay_value *a, const struct fay_value *b)
{
	if (a->origin != b->origin) {
		a->origin = 0;
		return;
	}
	a->dlo = a->dlo < b->dlo ? a->dlo : b->dlo;
	a->dhi = a->dhi > b->dhi ? a->dhi : b->dhi;
}

static void record_join(struct fay_state *a, struct fay_state *b)
{
	a->flags_undefined |= b->flags_undefined;
	for (unsigned i = 0; i < 16; i++)
		a->vectors[i] &= b->vectors[i];
	a->flags_covered &= b->flags_covered;
	if (a->assumed != b->assumed)
		a->assumed = 0;
	if (a->record != b->record || a->flags_width != b->flags_width ||
	    a->carry_inverted != b->carry_inverted) {
		forget_record(a);
		forget_record(b);
	}
}

bool fay_state_join(struct fay_state *a, struct fay_state *b, const struct fay_join_plan *plan)
{
	struct small_classes small;
	struct classes *c = classes_create(a->count, &small);
	struct fay_relation_join relations;
	struct fay_fill_join fills;

	if (!c)
		return false;
	fay_fills_settle(b);
	align_slots(a, b);
	fay_fills_gather(&fills, a, b, plan);
	record_join(a, b);
	fay_relations_gather(&relations, a, b, plan);
	for (uint32_t i = 0; i < a->count; i++) {
		struct fay_value *v = &a->loc[i];
		const struct fay_value *other = &b->loc[i];
		uint64_t da, db;
		uint32_t na, nb;

		if (v->kind == other->kind && v->tag == other->tag &&
		    /* nothing to be joined */
		    (v->kind == KIND_UNINIT || v->kind == KIND_SAVED || v->kind == KIND_UPPER)) {
			v->origin = 0;
			name_apart(v, i);
			continue;
		}
		na = name_of(v, &da);
		nb = name_of(other, &db);
		origin_join(v, other);
		value_join(v, other);
		if (na && nb && fay_value_numeric(v)) {
			struct class *e = class_of(c, na, nb, da - db, i, da);

			v->delta = da - e->leader_delta;
			v->id = e->leader;
		} else {
			name_apart(v, i);
		}
	}
	a->next_id = a->count + 1;
	fay_relations_scatter(&relations, a);
	fay_fills_scatter(&fills, a);
	classes_release(c, &small);
	return true;
}

void fay_state_widen_one(struct fay_state *joined, const struct fay_state *old, uint32_t location,
			 const struct fay_thresholds *t)
{
	struct fay_value *v = &joined->loc[location];
	const struct fay_value *before = &old->loc[location];

	if (!fay_value_numeric(v) || !fay_value_numeric(before) ||
	    fay_scalar_includes(&before->s, &v->s))
		return;
	v->s = fay_scalar_widen(&before->s, &v->s, t);
	if (v->size == 4 && location >= LOC_SLOTS)
		v->s = fay_scalar_zext(&v->s, 32);
}

void fay_state_widen(struct fay_state *joined, const struct fay_state *old,
		     const struct fay_thresholds *t, unsigned round)
{
	for (uint32_t i = 0; i < joined->count; i++)
		fay_state_widen_one(joined, old, i, t);
	fay_relations_widen(joined, old, round);
}
