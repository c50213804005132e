/* SPDX-License-Identifier: MIT */
/*
 * The abstract machine state: what every register, every stack slot and the flags may hold at one place of the program.
 *
 * Values carry a name (`id`) and a distance from it, so that equal and shifted copies are known as such: when a branch tells
 * something of one, all its copies learn it. Names mean something within one state only. A stored state's names are canonical (1 +
 * the first location that bears the name), so the name of a location says which earlier location it is tied to, and by how much.
 *
 * The stack is a list of 4-byte slots downward from rsp at entry, exactly as deep as rsp is: what is below rsp is not remembered,
 * since an interrupt or signal may overwrite it. An 8-byte value occupies its lower slot (size 8) and marks the upper one KIND_UPPER.
 */
#include <stdlib.h>
#include <string.h>

#include "fills.h"
#include "relations.h"

#define ID_CONSTANT UINT32_MAX /* in keys of joins: the number itself, named by its value */

struct fay_state *fay_state_create(uint32_t capacity)
{
	struct fay_state *s = malloc(fay_state_size(capacity));

	if (s)
		memset(s, 0, offsetof(struct fay_state, relations));
	return s;
}

struct fay_value fay_value_scalar(struct fay_scalar s)
{
	return (struct fay_value){ .s = s, .kind = KIND_SCALAR, .tag = TAG_NONE, .size = 8, .init = 0xff };
}

struct fay_value fay_value_uninit(void)
{
	return (struct fay_value){ .s = fay_scalar_top(), .kind = KIND_UNINIT, .tag = TAG_NONE, .size = 8 };
}

static struct fay_value uninit_slot(void)
{
	struct fay_value v = fay_value_uninit();

	v.size = 4;
	return v;
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
		memcpy(to->relations, from->relations, from->relation_count * sizeof(from->relations[0]));
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

static void forget_record(struct fay_state *s)
{
	s->record = RECORD_NONE;
	s->flags_covered = 0;
	for (unsigned i = LOC_FLAGS_A; i <= LOC_FLAGS_R; i++)
		s->loc[i] = fay_value_uninit();
}

/* ---- names ---- */

/* A value's name for comparing: constants are named by themselves. Returns the id, 0 if it has none. */
static uint32_t name_of(const struct fay_value *v, uint64_t *delta)
{
	if (!fay_value_numeric(v) || v->init != 0xff) {
		*delta = 0;
		return 0;
	}
	if (fay_scalar_is_const(&v->s)) {
		*delta = v->s.umin;
		return ID_CONSTANT;
	}
	*delta = v->delta;
	return v->id;
}

struct class {
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

static struct classes *classes_create(uint32_t locations)
{
	uint32_t size = 64;
	size_t head;
	struct classes *c;

	while (size < 2 * locations)
		size *= 2;
	head = sizeof(*c) + size * sizeof(c->index[0]);
	c = malloc(head + locations * sizeof(c->list[0]));
	if (c) {
		memset(c, 0, head);
		c->mask = size - 1;
		c->list = (struct class *)((char *)c + head);
	}
	return c;
}

static uint64_t class_hash(uint32_t a, uint32_t b, uint64_t apart)
{
	uint64_t h = ((uint64_t)a << 32 | b) * 0x9e3779b97f4a7c15u ^ apart * 0xff51afd7ed558ccdu;

	return h ^ h >> 29;
}

/* The class of (a, b, apart); a new one is led by `location`. */
static struct class *class_of(struct classes *c, uint32_t a, uint32_t b, uint64_t apart, uint32_t location, uint64_t delta)
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
	*e = (struct class){ .a = a, .b = b, .apart = apart, .leader = location + 1, .leader_delta = delta };
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

bool fay_state_canonical(struct fay_state *s)
{
	struct classes *c = classes_create(s->count);

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
	free(c);
	return true;
}

/* ---- join ---- */

static void split_slot(struct fay_state *s, uint32_t upper);

/* Makes 8-byte slots of both states lie alike. */
static void align_slots(struct fay_state *a, struct fay_state *b)
{
	for (uint32_t i = LOC_SLOTS; i < a->count; i++) {
		if ((a->loc[i].kind == KIND_UPPER) == (b->loc[i].kind == KIND_UPPER))
			continue;
		if (a->loc[i].kind == KIND_UPPER)
			split_slot(a, i);
		else
			split_slot(b, i);
	}
}

static void value_join(struct fay_value *a, const struct fay_value *b)
{
	if (a->kind == KIND_UNINIT || b->kind == KIND_UNINIT) {
		uint8_t tag = a->kind == b->kind && a->tag == b->tag ? a->tag : TAG_NONE, size = a->size;

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
	if (a->record != b->record || a->flags_width != b->flags_width || a->carry_inverted != b->carry_inverted) {
		forget_record(a);
		forget_record(b);
	}
}

bool fay_state_join(struct fay_state *a, struct fay_state *b, const struct fay_join_plan *plan)
{
	struct classes *c = classes_create(a->count);
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
		uint64_t da, db;
		uint32_t na, nb;

		if (v->kind == b->loc[i].kind && v->tag == b->loc[i].tag &&
		    (v->kind == KIND_UNINIT || v->kind == KIND_SAVED || v->kind == KIND_UPPER)) { /* nothing to be joined */
			v->origin = 0;
			name_apart(v, i);
			continue;
		}
		na = name_of(v, &da);
		nb = name_of(&b->loc[i], &db);
		origin_join(v, &b->loc[i]);
		value_join(v, &b->loc[i]);
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
	free(c);
	return true;
}

void fay_state_widen_one(struct fay_state *joined, const struct fay_state *old, uint32_t location, const struct fay_thresholds *t)
{
	struct fay_value *v = &joined->loc[location];
	const struct fay_value *before = &old->loc[location];

	if (!fay_value_numeric(v) || !fay_value_numeric(before) || fay_scalar_includes(&before->s, &v->s))
		return;
	v->s = fay_scalar_widen(&before->s, &v->s, t);
	if (v->size == 4 && location >= LOC_SLOTS)
		v->s = fay_scalar_zext(&v->s, 32);
}

void fay_state_widen(struct fay_state *joined, const struct fay_state *old, const struct fay_thresholds *t, unsigned round)
{
	for (uint32_t i = 0; i < joined->count; i++)
		fay_state_widen_one(joined, old, i, t);
	fay_relations_widen(joined, old, round);
}

static bool value_equal(const struct fay_value *a, const struct fay_value *b)
{
	if (a->kind != b->kind || a->tag != b->tag || a->size != b->size || a->init != b->init)
		return false;
	if (a->kind == KIND_UNINIT || a->kind == KIND_SAVED || a->kind == KIND_HELPER || a->kind == KIND_MIXED || a->kind == KIND_UPPER)
		return true;
	return a->id == b->id && a->delta == b->delta && fay_scalar_equal(&a->s, &b->s);
}

bool fay_state_equal(const struct fay_state *a, const struct fay_state *b)
{
	if (a->count != b->count || a->record != b->record || a->flags_width != b->flags_width || a->flags_covered != b->flags_covered ||
	    a->flags_undefined != b->flags_undefined || a->carry_inverted != b->carry_inverted || a->assumed != b->assumed ||
	    memcmp(a->vectors, b->vectors, sizeof(a->vectors)))
		return false;
	for (uint32_t i = 0; i < a->count; i++)
		if (!value_equal(&a->loc[i], &b->loc[i]))
			return false;
	return a->fill_count == b->fill_count && !memcmp(a->fills, b->fills, a->fill_count * sizeof(a->fills[0])) &&
	       a->relation_count == b->relation_count && !memcmp(a->relations, b->relations, a->relation_count * sizeof(a->relations[0]));
}

static bool value_includes(const struct fay_value *outer, const struct fay_value *inner)
{
	if (outer->kind == KIND_UNINIT)
		return inner->kind != KIND_UPPER && (outer->tag == TAG_NONE || (inner->kind == KIND_UNINIT && inner->tag == outer->tag));
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

/* Does inner know what outer says: location i is its leader plus delta? */
static bool tie_included(const struct fay_state *outer, const struct fay_state *inner, uint32_t i)
{
	const struct fay_value *v = &outer->loc[i];
	uint32_t leader = v->id - 1;
	uint64_t di, dl;
	uint32_t ni, nl;

	if (!fay_value_numeric(v) || v->id == 0 || leader == i)
		return true;
	if (fay_scalar_is_const(&outer->loc[i].s) && fay_scalar_is_const(&outer->loc[leader].s))
		return true;
	ni = name_of(&inner->loc[i], &di);
	nl = name_of(&inner->loc[leader], &dl);
	if (ni && ni == nl && di - dl == v->delta)
		return true;
	/* A number that turned out to be one constant still has the name it had. */
	v = &inner->loc[i];
	return ni && nl && v->id && v->id == inner->loc[leader].id && v->delta - inner->loc[leader].delta == outer->loc[i].delta;
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
	     outer->carry_inverted != inner->carry_inverted || (outer->flags_covered & ~inner->flags_covered)))
		return false;
	fay_fills_settle(inner);
	for (uint32_t i = LOC_SLOTS; i < outer->count; i++)
		if (inner->loc[i].kind == KIND_UPPER && outer->loc[i].kind != KIND_UPPER)
			split_slot(inner, i);
	for (uint32_t i = 0; i < outer->count; i++) {
		if (i >= LOC_FLAGS_A && i <= LOC_FLAGS_R && outer->record == RECORD_NONE)
			continue;
		if (i >= LOC_SLOTS && outer->loc[i].kind != KIND_UPPER && inner->loc[i].kind != KIND_UPPER &&
		    outer->loc[i].size != inner->loc[i].size && outer->loc[i].kind != KIND_UNINIT)
			return false;
		if (i >= LOC_SLOTS && outer->loc[i].kind == KIND_UNINIT && outer->loc[i].tag == TAG_NONE)
			continue; /* whatever is there must not be read */
		if (i >= LOC_SLOTS && outer->loc[i].kind == KIND_UNINIT && inner->loc[i].size != outer->loc[i].size)
			return false; /* a register's value at entry, which a pop gives back */
		if (!value_includes(&outer->loc[i], &inner->loc[i]) || !tie_included(outer, inner, i))
			return false;
	}
	return fay_fills_include(outer, inner) && fay_relations_include(outer, inner);
}

/* ---- stack slots ---- */

/* Slot of the 4 bytes at `offset` (a negative multiple of 4). */
static uint32_t slot_at(int64_t offset) { return LOC_SLOTS + (uint32_t)(-offset / 4) - 1; }

static int64_t floor4(int64_t x) { return x & ~(int64_t)3; }

static struct fay_value half(const struct fay_value *v, bool upper)
{
	struct fay_value r;
	struct fay_scalar by = fay_scalar_const(32);

	if (v->kind != KIND_SCALAR)
		return uninit_slot();
	r = fay_value_scalar(upper ? fay_scalar_shr(&v->s, &by) : fay_scalar_zext(&v->s, 32));
	r.size = 4;
	r.init = upper ? v->init >> 4 : v->init & 0xf;
	if (!r.init)
		return uninit_slot();
	r.init |= 0xf0;
	if (!upper && v->s.umax <= UINT32_MAX) {
		r.id = v->id;
		r.delta = v->delta;
		r.origin = v->origin;
		r.dlo = v->dlo;
		r.dhi = v->dhi;
	}
	return r;
}

/* `upper` is the KIND_UPPER slot; the one below it in memory is the next in number. */
static void split_slot(struct fay_state *s, uint32_t upper)
{
	struct fay_value v;

	if (upper + 1 >= s->count) {
		s->loc[upper] = uninit_slot();
		return;
	}
	v = s->loc[upper + 1];
	s->loc[upper] = half(&v, true);
	s->loc[upper + 1] = half(&v, false);
}

/* Makes slot i a 4-byte one. */
static void split_around(struct fay_state *s, uint32_t i)
{
	if (s->loc[i].kind == KIND_UPPER)
		split_slot(s, i);
	else if (s->loc[i].size == 8 && i > LOC_SLOTS && s->loc[i - 1].kind == KIND_UPPER)
		split_slot(s, i - 1);
	else if (s->loc[i].size == 8)
		s->loc[i].size = 4;
}

/* The slot that describes byte `offset`, and which of its bytes that is. */
static const struct fay_value *describing(const struct fay_state *s, int64_t offset, unsigned *byte)
{
	uint32_t i = slot_at(floor4(offset));

	*byte = (unsigned)(offset & 3);
	if (s->loc[i].kind == KIND_UPPER && i + 1 < s->count) {
		*byte += 4;
		return &s->loc[i + 1];
	}
	return &s->loc[i];
}

static enum fay_slot_status status_of(const struct fay_value *v, unsigned byte)
{
	switch (v->kind) {
	case KIND_SCALAR:
		return v->init >> byte & 1 ? SLOT_OK : SLOT_UNINIT;
	case KIND_UNINIT:
		return SLOT_UNINIT;
	case KIND_RETURN:
		return SLOT_RETURN;
	default:
		return SLOT_KIND;
	}
}

enum fay_slot_status fay_stack_check(const struct fay_state *s, int64_t low, int64_t high)
{
	for (int64_t offset = low; offset < high; offset++) {
		unsigned byte;
		const struct fay_value *v = describing(s, offset, &byte);
		enum fay_slot_status status = status_of(v, byte);

		if (status != SLOT_OK)
			return status;
	}
	return SLOT_OK;
}

enum fay_slot_status fay_stack_load(struct fay_state *s, int64_t offset, unsigned size, struct fay_value *value)
{
	uint32_t i = slot_at(floor4(offset));
	enum fay_slot_status status;
	struct fay_scalar bits = fay_scalar_top();

	if (!(offset & 3) && size == 8 && s->loc[i].size == 8 && s->loc[i].kind != KIND_UPPER) {
		*value = s->loc[i];
		if (value->kind == KIND_RETURN)
			return SLOT_RETURN;
		return value->kind == KIND_UNINIT || value->init != 0xff ? SLOT_UNINIT : SLOT_OK;
	}
	if (!(offset & 3) && size == 4 && s->loc[i].size == 4 && s->loc[i].kind == KIND_SCALAR && s->loc[i].init == 0xff) {
		*value = s->loc[i];
		value->size = 8;
		return SLOT_OK;
	}
	*value = fay_value_uninit();
	status = fay_stack_check(s, offset, offset + size);
	if (status != SLOT_OK)
		return status;
	bits.unknown = 0;
	for (unsigned k = 0; k < size; k++) {
		unsigned byte;
		const struct fay_value *v = describing(s, offset + k, &byte);

		bits.value |= (v->s.value >> 8 * byte & 0xff) << 8 * k;
		bits.unknown |= (v->s.unknown >> 8 * byte & 0xff) << 8 * k;
	}
	fay_scalar_normalise(&bits);
	if (!(offset & 3) && size == 4 && s->loc[i].size == 8 && s->loc[i].kind == KIND_SCALAR) {
		struct fay_scalar low = fay_scalar_zext(&s->loc[i].s, 32);

		fay_scalar_meet(&bits, &low);
		*value = fay_value_scalar(bits);
		if (s->loc[i].s.umax <= UINT32_MAX) {
			value->id = s->loc[i].id;
			value->delta = s->loc[i].delta;
		}
		return SLOT_OK;
	}
	*value = fay_value_scalar(bits);
	return SLOT_OK;
}

/* Replaces byte `byte` of 4-byte slot i by unknown or the given bits. */
static void put_byte(struct fay_value *slot, unsigned byte, uint64_t value, uint64_t unknown)
{
	uint64_t mask = (uint64_t)0xff << 8 * byte;
	struct fay_scalar s = fay_scalar_top();

	if (slot->kind != KIND_SCALAR) {
		*slot = fay_value_scalar(fay_scalar_range(0, UINT32_MAX));
		slot->size = 4;
		slot->init = 0xf0;
	}
	s.value = (slot->s.value & ~mask) | value << 8 * byte;
	s.unknown = (slot->s.unknown & ~mask & UINT32_MAX) | unknown << 8 * byte;
	fay_scalar_normalise(&s);
	slot->s = s;
	slot->init |= (uint8_t)(1u << byte);
	slot->id = 0;
	slot->origin = 0;
}

static bool covers_return(const struct fay_state *s, int64_t low, int64_t high)
{
	for (int64_t offset = floor4(low); offset < high; offset += 4) {
		unsigned byte;

		if (describing(s, offset, &byte)->kind == KIND_RETURN)
			return true;
	}
	return false;
}

enum fay_slot_status fay_stack_store(struct fay_state *s, int64_t offset, unsigned size, const struct fay_value *value)
{
	uint32_t i = slot_at(floor4(offset));

	if (covers_return(s, offset, offset + size))
		return SLOT_RETURN;
	if (s->fill_count && (value->kind != KIND_SCALAR || value->init != 0xff))
		fay_fills_forget(s, offset, offset + size);
	for (int64_t o = floor4(offset); o < offset + size; o += 4)
		split_around(s, slot_at(o));
	if (size == 8 && !(offset & 3)) {
		s->loc[i] = *value;
		s->loc[i].size = 8;
		s->loc[i - 1] = uninit_slot();
		s->loc[i - 1].kind = KIND_UPPER;
		return SLOT_OK;
	}
	if (size == 4 && !(offset & 3)) {
		s->loc[i] = half(value, false);
		return SLOT_OK;
	}
	for (unsigned k = 0; k < size; k++) {
		uint32_t at = slot_at(floor4(offset + k));

		if (value->kind == KIND_SCALAR && (value->init >> k & 1))
			put_byte(&s->loc[at], (unsigned)((offset + k) & 3), value->s.value >> 8 * k & 0xff, value->s.unknown >> 8 * k & 0xff);
		else
			s->loc[at] = uninit_slot();
	}
	return SLOT_OK;
}

enum fay_slot_status fay_stack_havoc(struct fay_state *s, int64_t low, int64_t high, bool fill)
{
	if (low >= high)
		return SLOT_OK;
	if (covers_return(s, low, high))
		return SLOT_RETURN;
	for (int64_t o = floor4(low); o < high; o += 4)
		split_around(s, slot_at(o));
	for (int64_t offset = low; offset < high; offset++) {
		struct fay_value *slot = &s->loc[slot_at(floor4(offset))];
		unsigned byte = (unsigned)(offset & 3);

		if (fill || (slot->kind == KIND_SCALAR && (slot->init >> byte & 1)))
			put_byte(slot, byte, 0, 0xff);
	}
	return SLOT_OK;
}
