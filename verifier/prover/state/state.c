/* SPDX-License-Identifier: MIT */
/*
 * The abstract machine state: what every register, every stack slot and the flags may hold at one
 * place of the program.
 *
 * Values carry a name (`id`) and a distance from it, so that equal and shifted copies are known as
 * such: when a branch tells something of one, all its copies learn it. Names mean something within
 * one state only. A stored state's names are canonical (1 + the first location that bears the
 * name), so the name of a location says which earlier location it is tied to, and by how much.
 *
 * The stack is a list of 4-byte slots downward from rsp at entry, exactly as deep as rsp is: what
 * is below rsp is not remembered, since an interrupt or signal may overwrite it. An 8-byte value
 * occupies its lower slot (size 8) and marks the upper one KIND_UPPER.
 */
#include <stdlib.h>
#include <string.h>

#include "state.h"
#include "state_parts.h"

struct fay_state *fay_state_create(uint32_t capacity)
{
	struct fay_state *s = malloc(fay_state_size(capacity));

	if (s)
		memset(s, 0, offsetof(struct fay_state, relations));
	return s;
}

static struct fay_value pointer(enum fay_region region)
{
	struct fay_value v = fay_value_scalar(fay_scalar_const(0));

	v.kind = KIND_POINTER;
	v.tag = (uint8_t)region;
	return v;
}

void fay_state_entry(struct fay_state *s)
{
	static const uint8_t saved[] = { FAY_RBX, FAY_RBP, FAY_R12, FAY_R13, FAY_R14, FAY_R15 };

	memset(s, 0, offsetof(struct fay_state, relations));
	s->count = LOC_SLOTS;
	s->flags_undefined = FLAG_ALL;
	for (unsigned i = 0; i < LOC_SLOTS; i++) {
		s->loc[i] = fay_value_uninit();
		if (i < 16)
			s->loc[i].tag = (uint8_t)i;
	}
	for (unsigned i = 0; i < sizeof(saved); i++) {
		s->loc[saved[i]].kind = KIND_SAVED;
		s->loc[saved[i]].init = 0xff;
	}
	s->loc[FAY_RDI] = pointer(REGION_EVENT);
	s->loc[FAY_RSI] = pointer(REGION_LOCAL);
	s->loc[FAY_RDX] = pointer(REGION_GLOBAL);
	s->loc[FAY_RSP] = pointer(REGION_STACK);
	s->next_id = 1;
	fay_state_canonical(s);
}

void fay_state_copy(struct fay_state *to, const struct fay_state *from)
{
	memcpy(to, from, offsetof(struct fay_state, relations));
	if (from->relation_count)
		memcpy(to->relations, from->relations,
		       from->relation_count * sizeof(from->relations[0]));
	if (from->fill_count)
		memcpy(to->fills, from->fills, from->fill_count * sizeof(from->fills[0]));
	memcpy(to->loc, from->loc, from->count * sizeof(from->loc[0]));
}

void fay_state_set_depth(struct fay_state *s, int64_t depth)
{
	uint32_t count = LOC_SLOTS + (uint32_t)(depth / 4);

	if (s->fill_count && count < s->count)
		fay_fills_forget(s, -fay_state_depth(s), -depth);
	for (uint32_t i = s->count; i < count; i++)
		s->loc[i] = uninit_slot();
	s->count = count;
	/* An 8-byte value of which the lower half is gone. */
	if (count > LOC_SLOTS && s->loc[count - 1].kind == KIND_UPPER)
		s->loc[count - 1] = uninit_slot();
}

static bool value_equal(const struct fay_value *a, const struct fay_value *b)
{
	if (a->kind != b->kind || a->tag != b->tag || a->size != b->size || a->init != b->init)
		return false;
	if (a->kind == KIND_UNINIT || a->kind == KIND_SAVED || a->kind == KIND_HELPER ||
	    a->kind == KIND_MIXED || a->kind == KIND_UPPER)
		return true;
	return a->id == b->id && a->delta == b->delta && fay_scalar_equal(&a->s, &b->s);
}

bool fay_state_equal(const struct fay_state *a, const struct fay_state *b)
{
	if (a->count != b->count || a->record != b->record || a->flags_width != b->flags_width ||
	    a->flags_covered != b->flags_covered || a->flags_undefined != b->flags_undefined ||
	    a->carry_inverted != b->carry_inverted || a->assumed != b->assumed ||
	    memcmp(a->vectors, b->vectors, sizeof(a->vectors)))
		return false;
	for (uint32_t i = 0; i < a->count; i++)
		if (!value_equal(&a->loc[i], &b->loc[i]))
			return false;
	return a->fill_count == b->fill_count &&
	       !memcmp(a->fills, b->fills, a->fill_count * sizeof(a->fills[0])) &&
	       a->relation_count == b->relation_count &&
	       !memcmp(a->relations, b->relations, a->relation_count * sizeof(a->relations[0]));
}

static bool value_includes(const struct fay_value *outer, const struct fay_value *inner)
{
	if (outer->kind == KIND_UNINIT)
		return inner->kind != KIND_UPPER &&
		       (outer->tag == TAG_NONE ||
			(inner->kind == KIND_UNINIT && inner->tag == outer->tag));
	if (outer->kind == KIND_MIXED)
		return inner->kind != KIND_UNINIT && inner->kind != KIND_UPPER;
	if (inner->kind != outer->kind || inner->tag != outer->tag)
		return false;
	if (outer->kind == KIND_RETURN)
		return fay_scalar_equal(&outer->s, &inner->s);
	if (!fay_value_numeric(outer))
		return true;
	return !(outer->init & ~inner->init) && fay_scalar_includes(&outer->s, &inner->s);
}

static bool tied(const struct fay_value *v, uint32_t i)
{
	return v->id != i + 1 && v->id && fay_value_numeric(v);
}

/* Does inner know what outer says: location i, which is tied, is its leader plus delta? */
static bool tie_included(const struct fay_state *outer, const struct fay_state *inner, uint32_t i)
{
	const struct fay_value *v = &outer->loc[i];
	uint32_t leader = v->id - 1;
	uint64_t di, dl;
	uint32_t ni, nl;

	/* What both numbers are is asked of each. But a state that no execution has may tie two
	 * that do not lie so: it does not include one that has them. */
	if (fay_scalar_is_const(&v->s) && fay_scalar_is_const(&outer->loc[leader].s) &&
	    v->s.umin - outer->loc[leader].s.umin == v->delta)
		return true;
	ni = name_of(&inner->loc[i], &di);
	nl = name_of(&inner->loc[leader], &dl);
	if (ni && ni == nl && di - dl == v->delta)
		return true;
	/* A number that turned out to be one constant still has the name it had. */
	v = &inner->loc[i];
	return ni && nl && v->id && v->id == inner->loc[leader].id &&
	       v->delta - inner->loc[leader].delta == outer->loc[i].delta;
}

/* Whether both say the same, names apart; then the one includes the other. */
static inline bool alike(const struct fay_value *a, const struct fay_value *b)
{
	return a->kind == b->kind && a->tag == b->tag && a->size == b->size && a->init == b->init &&
	       (a->kind == KIND_UNINIT || a->kind == KIND_SAVED || a->kind == KIND_UPPER ||
		fay_scalar_equal(&a->s, &b->s));
}

/* What outer says of location i, its tie to other locations apart. */
static bool location_included(const struct fay_value *outer, const struct fay_value *inner,
			      uint32_t i)
{
	if (i >= LOC_SLOTS && outer->kind != KIND_UPPER && inner->kind != KIND_UPPER &&
	    outer->size != inner->size && outer->kind != KIND_UNINIT)
		return false;
	if (i >= LOC_SLOTS && outer->kind == KIND_UNINIT && outer->tag == TAG_NONE)
		return true; /* whatever is there must not be read */
	if (i >= LOC_SLOTS && outer->kind == KIND_UNINIT && inner->size != outer->size)
		return false; /* a register's value at entry, which a pop gives back */
	return value_includes(outer, inner);
}

bool fay_state_includes(const struct fay_state *outer, struct fay_state *inner)
{
	if (outer->count != inner->count || (inner->flags_undefined & ~outer->flags_undefined))
		return false;
	if (outer->assumed && outer->assumed != inner->assumed)
		return false;
	for (unsigned i = 0; i < 16; i++)
		if (outer->vectors[i] & ~inner->vectors[i])
			return false;
	if (outer->record != RECORD_NONE &&
	    (outer->record != inner->record || outer->flags_width != inner->flags_width ||
	     outer->carry_inverted != inner->carry_inverted ||
	     (outer->flags_covered & ~inner->flags_covered)))
		return false;
	fay_fills_settle(inner);
	for (uint32_t i = LOC_SLOTS; i < outer->count; i++)
		if (inner->loc[i].kind == KIND_UPPER && outer->loc[i].kind != KIND_UPPER)
			fay_state_split_slot(inner, i);
	for (const struct fay_value *o = outer->loc, *v = inner->loc; o < outer->loc + outer->count;
	     o++, v++) {
		uint32_t i = (uint32_t)(o - outer->loc);

		if (i == LOC_FLAGS_A && outer->record == RECORD_NONE) {
			o += LOC_SLOTS - 1 - LOC_FLAGS_A;
			v += LOC_SLOTS - 1 - LOC_FLAGS_A;
			continue;
		}
		if ((!alike(o, v) && !location_included(o, v, i)) ||
		    (tied(o, i) && !tie_included(outer, inner, i)))
			return false;
	}
	return fay_fills_include(outer, inner) && fay_relations_include(outer, inner);
}
