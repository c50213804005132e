/* SPDX-License-Identifier: MIT */
/*
 * Joins and heads of loops along the way of a random program: see watch.h. Here and there a list is
 * made, mostly of what is so, and the checker asked whether it makes a state of it (walk_enter());
 * later, at any instruction, whether the state there comes to it once more, or back as along an
 * edge of a loop. What the checker accepts must hold: the node's state describes the machine, with
 * the list's variables as what is at their locations and all others the numbers that they were; and
 * a measure has moved as the checker says, no more often than it says. Then the run may go on in
 * the node's state.
 *
 * Limits: no fills, and of what was written only that a list may say less.
 */
#include <stdlib.h>

#include "verifier/checker/machine/machine.h"
#include "verifier/prover/certify/certify.h"
#include "watch.h"

#define NODES 12u /* each is the head of a loop that has all later ones */
#define SIZED REGION_LOCAL

static struct walk *const w = &watch.walk;
static struct machine *const m = &watch.walk.m;
static struct node nodes[NODES + 1];
static struct {
	uint64_t at;    /* where it was made */
	bool counted;   /* the state in hand comes from it, with this measure */
	wide measure;   /* as it was when the node was entered last */
	uint64_t round; /* since it was entered from outside */
} about[NODES];
static uint32_t node_count;
static struct fay_bytes lists;
static uint8_t store[1 << 20] __attribute__((aligned(16)));
static const uint8_t *loop_heads;
static bool loops;

void joins_begin(const uint8_t *heads, bool loops_only)
{
	w->nodes = nodes;
	w->node_count = NODES;
	w->store = (struct store){ .bytes = store, .size = sizeof(store) };
	memset(nodes, 0, sizeof(nodes));
	memset(about, 0, sizeof(about));
	node_count = 0;
	lists.size = 0;
	loop_heads = heads;
	loops = loops_only;
}

/* ---- lists ---- */

struct list {
	struct fay_bytes bytes;
	unsigned entries, variables;
	uint32_t kept; /* mask of registers that it has entries of */
	struct {
		uint64_t location;
		struct form form;
		int64_t k, c;
	} made[JOIN_MOST];
};

static void put(struct list *l, unsigned kind, uint64_t location)
{
	fay_bytes_number(&l->bytes, kind);
	fay_bytes_number(&l->bytes, location);
	l->entries++;
	if (location < LOCATION_STACK && kind != JOIN_REGISTERS && kind != JOIN_UNDEFINED)
		l->kept |= 1u << location;
}

static void put_range(struct list *l, wide lo, wide hi)
{
	lo = lo < INT64_MIN ? INT64_MIN : lo > INT64_MAX ? INT64_MAX : lo;
	hi = hi < lo ? lo : hi - lo > UINT64_MAX ? lo + UINT64_MAX : hi;
	fay_bytes_signed(&l->bytes, (int64_t)lo);
	fay_bytes_number(&l->bytes, (uint64_t)(hi - lo));
}

static wide near(wide n)
{
	static const int16_t few[] = { 0, 1, -1, 2, 7, 8, -8, 255, 256 };

	switch (program_pick(4)) {
	case 0: return n + few[program_pick(9)];
	case 1: return few[program_pick(9)];
	case 2: return n + POWER(program_pick(64));
	default: return n - POWER(program_pick(64));
	}
}

/* Mostly what includes r. */
static struct range around(struct range r)
{
	static const struct range wholes[] = {
		{ 0, UINT64_MAX },        { INT64_MIN, INT64_MAX }, { 0, UINT32_MAX }, { 0, 255 },
		{ INT32_MIN, INT32_MAX }, { 0, INT64_MAX },         { -64, 64 }
	};
	unsigned way = program_pick(4);

	if (way == 1)
		r = wholes[program_pick(7)];
	if (way == 2)
		r = (struct range){ near(r.lo), near(r.hi) };
	if (way == 3)
		r = (struct range){ r.lo >= 0 && r.lo < 9 ? 0 : r.lo - program_pick(9),
				    r.hi + program_pick(65) };
	r.hi += r.lo == r.hi;
	return r;
}

static uint64_t location_of(const struct slot *slot)
{
	return LOCATION_STACK + 4 * (uint64_t)(-1 - slot->at) + (uint64_t)__builtin_ctz(slot->size);
}

/* A number or a pointer somewhere, or NULL. */
static const struct value *place(uint64_t *location)
{
	for (unsigned i = 0; i < 8; i++) {
		const struct value *v;

		if (program_pick(3) || !m->s.slots) {
			*location = program_pick(16);
			v = &m->s.reg[*location];
		} else {
			const struct slot *slot = &m->s.slot[program_pick(m->s.slots)];

			*location = slot->at < 0 ? location_of(slot) : FAY_RSP;
			v = &slot->v;
		}
		if (*location != FAY_RSP && walk_numeric(v))
			return v;
	}
	return NULL;
}

static int64_t factor(void)
{
	static const int64_t few[] = { 1,  1, -1, -1,  2,         -2,        4,         8,
				       -8, 3, 1,  256, INT64_MIN, 1ll << 62, 1ll << 32, -1 };

	return few[program_pick(16)];
}

static void made(struct list *l, uint64_t location, const struct value *v, int64_t k, int64_t c)
{
	l->made[l->variables].location = location;
	l->made[l->variables].form = v->f;
	l->made[l->variables].k = k;
	l->made[l->variables++].c = c;
}

static void put_number(struct list *l, uint64_t location, const struct value *v)
{
	unsigned bits = v->kind == KIND_POINTER || program_pick(3) ? 64
			: program_pick(3) == 0                     ? v->bits
			: program_pick(2)                          ? 32
								   : 1 + program_pick(64);
	struct range r = around(value_range(m, v, bits, program_pick(2)));

	put(l, JOIN_NUMBER, location);
	fay_bytes_number(&l->bytes, bits);
	put_range(l, r.lo, r.hi);
	made(l, location, v, 1, 0);
}

static void put_multiple(struct list *l, uint64_t location, const struct value *v)
{
	int64_t k = v->f.v[0] ? (int64_t)common_factor((uint64_t)v->f.k[0], (uint64_t)v->f.k[1])
			      : 1,
		c = program_pick(3) ? v->f.c : (int64_t)near(v->f.c);
	struct range r = value_range(m, v, 64, program_pick(2));

	k = k <= 0 || program_pick(4) == 0 ? 1 + (int64_t)program_pick(8) : k;
	r = around((struct range){ (r.lo - c) / k, (r.hi - c) / k });
	put(l, JOIN_MULTIPLE, location);
	fay_bytes_number(&l->bytes, (uint64_t)k);
	fay_bytes_signed(&l->bytes, c);
	put_range(l, r.lo, r.hi);
	made(l, location, v, k, c);
}

/* In terms of a variable of the list: as it is, if it is one, or not. */
static void put_form(struct list *l, uint64_t location, const struct value *v)
{
	unsigned j = program_pick(l->variables), terms = program_pick(8) ? 1 : program_pick(3);
	const struct form *of = &l->made[j].form;
	int64_t k = factor(), c = program_pick(2) ? 0 : (int64_t)near(v->f.c);

	if (v->f.v[0] && v->f.v[0] == of->v[0] && of->k[0] && program_pick(5)) {
		k = v->f.k[0] == INT64_MIN ? 1 : v->f.k[0] / of->k[0];
		c = (int64_t)((uint64_t)v->f.c - (uint64_t)k * (uint64_t)of->c);
		if (l->made[j].k != 1 || l->made[j].c) {
			c = v->f.c;
			k = (int64_t)((uint64_t)k * (uint64_t)l->made[j].k);
		}
	}
	put(l, JOIN_FORM, location);
	fay_bytes_number(&l->bytes, v->kind == KIND_POINTER || program_pick(3) ? 64
				    : program_pick(2)                          ? v->bits
						      : 1 + program_pick(64));
	fay_bytes_signed(&l->bytes, c);
	fay_bytes_number(&l->bytes, terms);
	for (unsigned t = 0; t < terms; t++) {
		bool size = region_passed(m, SIZED) && !program_pick(4);

		fay_bytes_number(&l->bytes, t      ? program_pick(l->variables)
					    : size ? JOIN_MOST + SIZED
						   : j);
		fay_bytes_signed(&l->bytes, t ? factor() : k);
	}
}

/* Of the one variable there, or of the size that is passed. */
static void put_narrowed(struct list *l, uint64_t location, const struct value *v)
{
	const struct var *x = !v->f.v[1] ? var_find(&m->s, v->f.v[0]) : NULL;
	struct range r;

	if (region_passed(m, SIZED) && program_pick(4) == 0) {
		location = LOCATION_SIZES + SIZED;
		x = var_pinned(&m->s, PIN_SIZES + SIZED, 0);
	}
	if (!x)
		return;
	r = around(var_range(x));
	put(l, JOIN_RANGE, location);
	put_range(l, r.lo, r.hi);
}

static void put_fact(struct list *l, uint64_t location, const struct value *v)
{
	int64_t ka = factor(), kb = factor();
	struct form f = form_number(0);
	struct range r = { -8, 64 };
	uint64_t other;
	const struct value *b = place(&other);

	if (!b)
		return;
	if (region_passed(m, SIZED) && program_pick(2)) {
		f.v[0] = var_pinned(&m->s, PIN_SIZES + SIZED, 0)->id;
		f.k[0] = kb;
		other = LOCATION_SIZES + SIZED;
	} else {
		form_add(&f, &b->f, kb);
	}
	if (form_add(&f, &v->f, ka))
		r = form_range(m, &f);
	if (!program_pick(3))
		r = around(r);
	put(l, JOIN_FACT, location);
	fay_bytes_number(&l->bytes, other);
	fay_bytes_signed(&l->bytes, ka);
	fay_bytes_signed(&l->bytes, kb);
	put_range(l, r.lo, r.hi < INT64_MAX ? r.hi : INT64_MAX);
}

static void put_entry(struct list *l)
{
	uint64_t location;
	const struct value *v = place(&location);

	if (!v || l->variables > 8)
		return;
	switch (program_pick(9)) {
	case 0: put_multiple(l, location, v); break;
	case 1: put_narrowed(l, location, v); break;
	case 2: put_fact(l, location, v); break;
	case 3: put(l, JOIN_FORGET, location); break;
	case 4:
	case 5:
		if (l->variables) {
			put_form(l, location, v);
			break;
		}
		/* fall through */
	default: put_number(l, location, v);
	}
}

/* Numbers that no entry is of: nothing is known of some. */
static void put_forgotten(struct list *l)
{
	uint64_t mask = program_random() & 0xffff;

	put(l, JOIN_REGISTERS,
	    mask & ~(1u << FAY_RSP | 1u << FAY_RDI | 1u << FAY_RSI | l->kept | 0xf000));
	for (unsigned i = 0; i < m->s.slots; i++) {
		const struct slot *slot = &m->s.slot[i];
		bool has = slot->at >= 0;

		for (unsigned k = 0; !has && k < l->variables; k++)
			has = l->made[k].location == location_of(slot);
		if (!has && slot->v.kind == KIND_NUMBER && program_pick(4))
			put(l, JOIN_FORGET, location_of(slot));
	}
}

/* A number that may go up, or down, from here. */
static void put_counter(struct list *l, unsigned reg)
{
	const struct value *v = &m->s.reg[reg];
	unsigned bits = v->kind == KIND_POINTER || program_pick(3) ? 64 : 32;
	struct range r = value_range(m, v, bits, false);

	switch (program_pick(4)) {
	case 0: r = (struct range){ INT64_MIN, INT64_MAX }; break;
	case 1: r = (struct range){ 0, POWER(bits) - 1 }; break;
	case 2: r = (struct range){ -64, 100 }; break;
	default: r = (struct range){ 0, r.hi < 100 ? 100 : r.hi };
	}
	put(l, JOIN_NUMBER, reg);
	fay_bytes_number(&l->bytes, bits);
	put_range(l, r.lo, r.hi);
	made(l, reg, v, 1, 0);
}

/* For a loop: a number or two, which may count, and of all others that they are numbers. */
static void put_counters(struct list *l)
{
	static const uint8_t counters[] = { FAY_R11, FAY_R12, FAY_RBX, FAY_R13, FAY_RAX, FAY_RCX };

	for (unsigned n = 1 + program_pick(3); n; n--) {
		unsigned r = counters[program_pick(program_pick(3) ? 4 : 6)];

		if (walk_numeric(&m->s.reg[r]) && !(l->kept >> r & 1))
			put_counter(l, r);
	}
	if (program_pick(3) == 0)
		put_entry(l);
	for (unsigned r = 0; r < 16; r++) {
		if (l->kept >> r & 1 || r == FAY_RSP || m->s.reg[r].kind != KIND_NUMBER)
			continue;
		put(l, JOIN_NUMBER, r);
		fay_bytes_number(&l->bytes, 64);
		if (program_pick(2))
			put_range(l, 0, UINT64_MAX);
		else
			put_range(l, INT64_MIN, INT64_MAX);
	}
	for (unsigned i = 0; i < m->s.slots; i++)
		if (m->s.slot[i].at < 0 && m->s.slot[i].v.kind == KIND_NUMBER)
			put(l, JOIN_FORGET, location_of(&m->s.slot[i]));
}

static void random_list(struct list *l)
{
	if (loop_heads[watch.cpu.rip - w->subject->text.start] && program_pick(6)) {
		put_counters(l);
	} else {
		for (unsigned n = program_pick(5); n; n--)
			put_entry(l);
		if (program_pick(4))
			put_forgotten(l);
	}
	put(l, JOIN_UNDEFINED, program_pick(4) ? FLAG_ALL : program_pick(32));
}

/* ---- what is accepted holds ---- */

static bool measure_of(const struct node *n, wide *is)
{
	uint32_t i = (n->measure - 1u) % JOIN_MOST, j = (n->measure - 1u) / JOIN_MOST;
	const struct var *a = var_find(&m->s, n->first + i);
	const struct var *b = j ? var_find(&m->s, n->first + j - 1) : NULL;

	if (!n->measure || !a || !watch.variable[a->id].known || (j && !b) ||
	    (b && !watch.variable[b->id].known))
		return false;
	*is = watch_integer(a) - (b ? watch_integer(b) : 0);
	return true;
}

static bool moved(uint32_t k, wide is)
{
	const struct node *n = &nodes[k];
	wide was = about[k].measure;
	bool ok = n->flags & NODE_UP       ? is > was
		  : n->flags & NODE_DOWN   ? is < was
		  : n->flags & NODE_HALVES ? is >= 1 && 2 * is <= was
					   : is < was && !((uint64_t)is & ~(uint64_t)was);

	watch.seen.back++;
	if (!ok)
		return watch_bad("a measure moves otherwise", (uint64_t)is, (uint64_t)was);
	return about[k].round < n->bound ||
	       watch_bad("more rounds than the bound", about[k].round, n->bound);
}

/* Of the node's state, which is w->t's; the run may go on in it, and must where it went back. */
static bool joined(uint32_t k, bool back)
{
	static struct state before;
	static bool known[JOIN_MOST];
	static uint64_t number[JOIN_MOST];
	struct node *n = &nodes[k];
	uint32_t defs = m->defs;
	wide is = 0;
	bool counted;

	before = m->s;
	m->s = w->t.s;
	m->defs = 0;
	for (uint32_t i = 0; i < n->variables; i++) {
		known[i] = watch.variable[n->first + i].known;
		number[i] = watch.variable[n->first + i].number;
		watch.variable[n->first + i].known = false;
	}
	if (watch.cpu.flags_undefined & ~m->s.flags.undefined)
		return watch_bad("a join's flag is not defined", watch.cpu.flags_undefined, 0);
	if (!watch_state())
		return false;
	counted = measure_of(n, &is);
	if (back && counted && m->refine && !moved(k, is))
		return false;
	if (back || program_pick(loops ? 8 : 2)) {
		about[k].measure = is;
		about[k].counted = counted;
		about[k].round = back ? about[k].round + 1 : 1;
		while (node_count > k + 1) /* loops within are entered anew */
			walk_drop(w, --node_count);
		return true;
	}
	m->s = before;
	m->defs = defs;
	for (uint32_t i = 0; i < n->variables; i++) {
		watch.variable[n->first + i].known = known[i];
		watch.variable[n->first + i].number = number[i];
	}
	return true;
}

static bool enter(uint32_t k, bool back)
{
	struct node saved = nodes[k];
	bool ok;

	w->certificate = (struct reader){ .bytes = lists.at, .size = (uint32_t)lists.size };
	w->stays = false;
	ok = walk_enter(w, k, back);
	if (!ok)
		nodes[k] = saved;
	w->m.refusal.rule = w->t.refusal.rule = FAY_RULE_NONE;
	return ok;
}

static bool make(void)
{
	static struct list list;
	uint32_t k = node_count, at = (uint32_t)lists.size;

	list.bytes.size = 0;
	list.entries = list.variables = list.kept = 0;
	random_list(&list);
	fay_bytes_number(&lists, list.entries);
	fay_bytes_put(&lists, list.bytes.at, list.bytes.size);
	nodes[k] = (struct node){
		.flags = NODE_HEAD | NODE_JOIN, .list = at, .body = NODES - k, .bound = 1
	};
	if (list.variables && program_pick(4))
		nodes[k].measure = (uint16_t)(1 + program_pick(list.variables));
	if (nodes[k].measure && !program_pick(3))
		nodes[k].measure += (uint16_t)(JOIN_MOST * (1 + program_pick(list.variables)));
	about[k].at = watch.cpu.rip;
	about[k].counted = false;
	if (!enter(k, false))
		return true;
	watch.seen.lists++;
	node_count++;
	return joined(k, false);
}

bool joins_try(void)
{
	bool head = loop_heads[watch.cpu.rip - w->subject->text.start];

	for (uint32_t k = node_count; k-- > 0;) {
		bool here = about[k].at == watch.cpu.rip;
		bool back = about[k].counted && (here || !program_pick(3));

		if ((!here && (loops || program_pick(4))) || !enter(k, back))
			continue;
		watch.seen.again++;
		if (!joined(k, back))
			return false;
		if (back)
			break;
	}
	return node_count == NODES ||
	       program_pick(head ? 3 : 10) >= (head    ? 2
					       : loops ? 0
						       : 1) ||
	       make();
}
