/* SPDX-License-Identifier: MIT */
/*
 * Several places of one node. A loop may be written out: each of its rounds gets places of its own,
 * so that its head needs no list and no measure. What differs from round to round stays as it is in
 * each: a counter is a constant, bytes of the stack that were written are known one by one. Ways
 * may be kept apart: what each of them knows is not lost where they meet. And what an instruction
 * makes of the flags may be two cases.
 *
 * Places are made as edges lead to them, and wait in the order of their turns.
 */
#include "certify_parts.h"

#define LOOKED 128u         /* so many looks at places that wait count as one run of a node */
#define UNFOLD_PLACES 6000u /* beside those of a graph without any of this */

struct unfolding {
	const uint8_t *treat; /* per node of the graph */
	uint32_t room;
	uint32_t *next;           /* per place: the next that waits, by turns */
	uint32_t first;           /* that waits; FAY_NONE: none */
	uint32_t open;            /* the innermost head whose loop is being looked at; FAY_NONE */
	uint32_t *sequence, done; /* places as they were run */
	uint32_t looked;          /* places that wait, so many were looked at */
};

static bool constant(const struct value *v)
{
	return certify_numeric(v) && !v->f.v[0];
}

/* Whether both states may meet: no place that is read still has another constant. */
static bool alike(const struct certify *k, uint32_t node, struct state *a, struct state *b)
{
	uint32_t live = k->c->live ? k->c->live[node] : UINT32_MAX;
	unsigned slots = certify_slots(a);

	for (unsigned i = 0; i < 16u + slots; i++) {
		const struct value *x = i < 16 ? &a->reg[i] : &a->slot[i - 16].v;
		const struct value *y =
			walk_locate(b, i < 16 ? i : certify_location_of(&a->slot[i - 16]));

		if ((i >= 16 || live >> i & 1) && constant(x) && constant(y) && x->f.c != y->f.c)
			return false;
	}
	return true;
}

static uint32_t make_place(struct certify *k, uint32_t node, uint32_t skip, const struct turn *turn)
{
	struct place *p = &k->places[k->count];

	if (k->count == k->unfold->room)
		return FAY_NONE;
	certify_make_place(k, k->count, node, skip);
	p->to[0] = p->to[1] = FAY_NONE;
	p->plain = true;
	p->head = k->c->graph->nodes[node].is_header && !skip &&
		  !(k->unfold->treat[node] & TREAT_WRITTEN_OUT);
	p->turn = malloc(sizeof(*p->turn));
	if (!p->turn)
		abort();
	*p->turn = *turn;
	return k->count++;
}

/* Whether what is in hand may meet what waits at a place. */
static bool may_meet(const struct certify *k, const struct place *p)
{
	uint8_t treat = k->unfold->treat[p->node];

	if (p->skip ? p->one_case || !(treat & TREAT_REJOIN) : treat & TREAT_APART)
		return false;
	return !(treat & TREAT_CONSTANTS) || alike(k, p->node, p->in->s, &k->w->m.s);
}

uint32_t certify_unfold_edge(struct certify *k, uint32_t from, uint32_t node, uint32_t skip)
{
	struct unfolding *u = k->unfold;
	uint32_t *link = &u->first, to;
	struct turn turn;

	for (to = u->open; to != FAY_NONE && !skip; to = k->places[to].outer)
		if (k->places[to].node == node)
			return to; /* back to its head */
	if (!certify_turn_find(k, from == FAY_NONE ? NULL : k->places[from].turn, node, skip,
			       &turn))
		return FAY_NONE;
	for (; *link != FAY_NONE; link = &u->next[*link]) {
		struct place *p = &k->places[*link];
		int order = certify_turn_compare(&turn, p->turn);

		if (!(++u->looked % LOOKED))
			k->runs++;
		if (order < 0)
			break;
		if (!order && may_meet(k, p))
			return *link;
	}
	to = make_place(k, node, skip, &turn);
	if (to == FAY_NONE)
		return to;
	u->next[to] = *link;
	*link = to;
	return to;
}

bool certify_unfold_cases(const struct certify *k, uint32_t at, const struct fay_insn *insn)
{
	const struct place *p = &k->places[at];

	return k->unfold && k->unfold->treat[p->node] & TREAT_CASES &&
	       (insn->op == OP_CMOV || insn->op == OP_SETCC || insn->op == OP_ADC ||
		insn->op == OP_SBB);
}

bool certify_unfold_certain(const struct certify *k, uint32_t at, const struct fay_insn *insn)
{
	const struct place *p = &k->places[at];

	return k->unfold && k->c->sums && k->unfold->treat[p->node] & TREAT_FACTS &&
	       k->w->m.s.facts && insn->op != OP_JCC &&
	       fay_op_table[insn[-1].op].flags_written & FLAG_ZF;
}

bool certify_unfold_order(const struct certify *k, uint32_t at, uint32_t done)
{
	const struct place *p = &k->places[at];
	const struct fay_block *block = &k->c->cfg->blocks[k->c->graph->nodes[p->node].block];
	const struct fay_insn *insn = &k->c->cfg->insns[block->first + p->skip + done];
	const struct fay_insn *end = &k->c->cfg->insns[block->first + block->count];
	bool first = true;

	if (!k->unfold || !(k->unfold->treat[p->node] & TREAT_ORDER) || insn[-1].op != OP_CMP)
		return false;
	for (; insn < end && !fay_op_table[insn->op].flags_written; insn++, first = false)
		if (insn->op == OP_JCC || (!first && (insn->op == OP_CMOV || insn->op == OP_SETCC)))
			return insn->cc == CC_E || insn->cc == CC_NE;
	return false;
}

/* Registers of the operand with more variables than one. */
static unsigned sums_of(const struct certify *k, const struct fay_operand *o)
{
	const uint8_t regs[] = { o->kind == OPERAND_REG ? o->reg : FAY_NO_REG,
				 o->kind == OPERAND_MEM ? o->base : FAY_NO_REG,
				 o->kind == OPERAND_MEM ? o->index : FAY_NO_REG };
	unsigned mask = 0;

	for (unsigned i = 0; i < 3; i++)
		if (regs[i] < 16 && k->w->m.s.reg[regs[i]].kind == KIND_NUMBER &&
		    k->w->m.s.reg[regs[i]].f.v[1])
			mask |= 1u << regs[i];
	return mask;
}

/* Whether the sum of two variables that is in the register is compared with what has yet another: a
 * state can say nothing of three. */
static bool of_three(const struct certify *k, const struct value *v, const struct fay_operand *o)
{
	const struct value *other = o->kind == OPERAND_REG ? &k->w->m.s.reg[o->reg] : NULL;

	if (o->kind == OPERAND_MEM)
		return true;
	for (unsigned i = 0; other && i < 2; i++)
		if (other->f.v[i] && other->f.v[i] != v->f.v[0] && other->f.v[i] != v->f.v[1])
			return true;
	return false;
}

/* The registers that are a constant apart from this one. */
static unsigned beside(const struct certify *k, unsigned reg)
{
	const struct value *r = k->w->m.s.reg;
	unsigned mask = 0;

	for (unsigned i = 0; i < 16; i++) {
		struct form d = r[i].f;

		if (r[i].kind == KIND_NUMBER && r[i].bits == r[reg].bits &&
		    form_add(&d, &r[reg].f, -1) && !d.v[0])
			mask |= 1u << i;
	}
	return mask;
}

/* A register of which nothing could be learned: a sum that may have wrapped, or is larger than what
 * a fact says, or of which only a variable of its own can be compared with the other operand. */
static unsigned wrapping(const struct certify *k, uint32_t at, const struct fay_operand *o,
			 const struct fay_operand *with, unsigned bits)
{
	struct machine *m = &k->w->m;
	struct form f;

	const struct value *v = o->kind == OPERAND_REG ? &m->s.reg[o->reg] : NULL;
	bool known;

	if (!v || !sums_of(k, o))
		return 0;
	known = value_form(m, v, bits, false, &f) || value_form(m, v, bits, true, &f);
	if (!known || form_range(m, &f).hi >= INT64_MAX)
		return 1u << o->reg;
	if (!(k->unfold->treat[k->places[at].node] & TREAT_THREE) || !of_three(k, v, with))
		return 0;
	return beside(k, o->reg);
}

/* A register that is multiplied or shifted, and may have wrapped, with what is beside it. */
static unsigned wrapped(const struct certify *k, const struct fay_operand *o, unsigned bits)
{
	struct machine *m = &k->w->m;
	const struct value *v = o->kind == OPERAND_REG ? &m->s.reg[o->reg] : NULL;
	struct form f;

	return v && v->kind == KIND_NUMBER && !value_form(m, v, bits, false, &f) ? beside(k, o->reg)
										 : 0;
}

/* The registers of an address in a region whose size is passed, which is a third variable. */
static unsigned addressed(const struct certify *k, const struct fay_operand *o)
{
	const struct machine *m = &k->w->m;
	bool passed = false;

	if (o->kind != OPERAND_MEM)
		return 0;
	for (unsigned i = 0; i < 2; i++) {
		uint8_t reg = i ? o->index : o->base;

		passed |= reg < 16 && m->s.reg[reg].kind == KIND_POINTER &&
			  region_passed(m, m->s.reg[reg].tag);
	}
	return passed ? sums_of(k, o) : 0;
}

static bool has_quotient(const struct def *def, uint32_t defs)
{
	bool any = false;

	for (uint32_t i = 0; i < defs; i++)
		any |= def[i].kind == DEF_FLOOR && (def[i].factor != 1 || def[i].f.k[0] != 1);
	return any;
}

unsigned certify_unfold_sums(const struct certify *k, uint32_t at, const struct fay_insn *insn)
{
	static const struct fay_operand rax = { .kind = OPERAND_REG, .reg = FAY_RAX };
	uint8_t treat = k->unfold ? k->unfold->treat[k->places[at].node] : 0;
	const struct machine *m = &k->w->m;
	/* what a comparison tells of a number it tells of its quotients only by facts */
	bool facts = k->c->sums && treat & TREAT_FACTS && has_quotient(m->def, m->defs);
	unsigned rejoin = treat & TREAT_REJOIN || facts ? NO_REGISTER : 0;

	if (!(treat & (TREAT_CASES | TREAT_FACTS)))
		return 0;
	switch (insn->op) {
	case OP_MUL1: /* of what may have wrapped the product tells nothing */
		return wrapped(k, &rax, insn->width) | wrapped(k, &insn->src, insn->width);
	case OP_IMUL:
	case OP_SHR:
		return wrapped(k, &insn->src, insn->width) | wrapped(k, &insn->dst, insn->width);
	case OP_CMP:
	case OP_TEST:
		return wrapping(k, at, &insn->dst, &insn->src, insn->width) |
		       wrapping(k, at, &insn->src, &insn->dst, insn->width) | rejoin;
	case OP_LEA: return sums_of(k, &insn->src);
	default:
		return treat & TREAT_THREE ? addressed(k, &insn->dst) | addressed(k, &insn->src)
					   : 0;
	}
}

unsigned certify_unfold_words(const struct certify *k, uint32_t at, const struct state *s)
{
	unsigned mask = 0;

	if (!k->unfold || !(k->unfold->treat[k->places[at].node] & TREAT_CASES))
		return 0;
	for (unsigned r = 0; r < 16; r++) {
		const struct form *f = &s->reg[r].f;
		const struct var *v = s->reg[r].kind == KIND_NUMBER && f->v[0] && !f->v[1]
					      ? var_find((struct state *)s, f->v[0])
					      : NULL;

		if (v && !v->negative && v->lo > INT64_MAX)
			mask |= 1u << r;
	}
	return mask;
}

unsigned certify_unfold_first(struct certify *k, uint32_t at, const struct state *s)
{
	const struct place *p = &k->places[at];
	const struct fay_block *block = &k->c->cfg->blocks[k->c->graph->nodes[p->node].block];
	struct state *save;
	unsigned mask;

	if (!k->unfold || !(k->unfold->treat[p->node] & TREAT_THREE) || p->skip)
		return 0;
	save = certify_enter(k, s);
	mask = certify_unfold_sums(k, at, &k->c->cfg->insns[block->first]);
	certify_leave(k, save);
	return mask & (NO_REGISTER - 1);
}

bool certify_unfold_facts(const struct certify *k, uint32_t at, const struct state *s)
{
	const struct place *p = &k->places[at];

	return k->unfold && k->unfold->treat[p->node] & TREAT_FACTS &&
	       (p->skip ? has_quotient(p->in->def, p->in->defs) : s->facts > 0);
}

bool certify_unfold_heads(const struct certify *k, const struct place *p)
{
	return k->unfold && k->c->sums && p->head && k->unfold->treat[p->node] & TREAT_THREE;
}

/* ---- running them ---- */

bool certify_unfold_loop(struct certify *k, uint32_t head)
{
	struct unfolding *u = k->unfold;

	for (;;) {
		uint32_t *link = &u->first, at;

		while (*link != FAY_NONE && head != FAY_NONE &&
		       !certify_turn_inside(k, *link, head))
			link = &u->next[*link];
		at = *link;
		if (at == FAY_NONE)
			return true;
		*link = u->next[at];
		u->sequence[u->done++] = at;
		if (!(k->places[at].head ? certify_process_loop(k, at)
					 : certify_process_place(k, at)))
			return false;
	}
}

void certify_unfold_begin(struct certify *k, uint32_t head)
{
	struct place *p = &k->places[head];

	p->open = true;
	p->outer = k->unfold->open;
	p->first_inside = k->count;
	p->done_before = k->unfold->done;
	k->unfold->open = head;
	/* which places lie in the loop turns say, not numbers */
	k->w->nodes[head].body = UINT32_MAX - head;
}

void certify_unfold_rewind(struct certify *k, uint32_t head)
{
	struct unfolding *u = k->unfold;
	struct place *p = &k->places[head];
	uint32_t *link = &u->first;

	while (*link != FAY_NONE) {
		if (*link >= p->first_inside) {
			*link = u->next[*link];
			continue;
		}
		certify_drop_from(&k->places[*link].in, p->first_inside, k->count);
		certify_drop_from(&k->places[*link].in, head, head + 1);
		link = &u->next[*link];
	}
	for (uint32_t h = u->open; h != FAY_NONE; h = k->places[h].outer) {
		certify_drop_from(&k->places[h].back, p->first_inside, k->count);
		certify_drop_from(&k->places[h].back, head, head + 1);
	}
	while (k->count > p->first_inside)
		certify_release_place(&k->places[--k->count]);
	u->done = p->done_before;
	p->to[0] = p->to[1] = FAY_NONE;
	p->table_count = 0;
}

void certify_unfold_end(struct certify *k, uint32_t head)
{
	struct place *p = &k->places[head];

	p->open = false;
	p->end = k->unfold->done;
	k->unfold->open = p->outer;
}

/* ---- as nodes ---- */

/* A place for where no way leads: one of the same code, or one that is never come to. */
static uint32_t dead_place(struct certify *k, uint32_t *of_block, uint32_t node)
{
	static const struct turn nowhere;
	uint32_t *of = &of_block[k->c->graph->nodes[node].block];

	if (*of == FAY_NONE) {
		*of = make_place(k, node, 0, &nowhere);
		if (*of != FAY_NONE) {
			k->places[*of].head = false;
			k->unfold->sequence[k->unfold->done++] = *of;
		}
	}
	return *of;
}

static bool lead_everywhere(struct certify *k)
{
	uint32_t blocks = k->c->cfg->block_count, *of_block = calloc(blocks, sizeof(*of_block));
	bool ok = of_block != NULL;

	for (uint32_t i = 0; ok && i < blocks; i++)
		of_block[i] = FAY_NONE;
	for (uint32_t i = 0; ok && i < k->count; i++)
		if (!k->places[i].skip)
			of_block[k->c->graph->nodes[k->places[i].node].block] = i;
	for (uint32_t i = 0; ok && i < k->count; i++) {
		const struct fay_node *n = &k->c->graph->nodes[k->places[i].node];

		for (unsigned side = 0; ok && side < 2 && !k->places[i].parted; side++) {
			uint32_t *to = &k->places[i].to[side];

			if (*to != FAY_NONE || n->succ[side] == FAY_NONE)
				continue;
			*to = dead_place(k, of_block, n->succ[side]);
			ok = *to != FAY_NONE;
		}
	}
	free(of_block);
	return ok;
}

/* A list may name what a loop around counts by, by how far its head is. */
static uint64_t counted_from(uint64_t location, uint32_t at, const uint32_t *now)
{
	uint64_t apart;

	if (location < LOCATION_COUNTS)
		return location;
	apart = (location - LOCATION_COUNTS) >> 8;
	apart = now[at] - now[at - apart];
	return LOCATION_COUNTS + (apart << 8) + (location & 255);
}

static void move_counts(struct place *p, uint32_t at, const uint32_t *now)
{
	for (uint32_t i = 0; i < p->rep_count; i++)
		p->reps[i].location = counted_from(p->reps[i].location, at, now);
	for (uint32_t i = 0; i < p->fact_count; i++)
		p->facts[i].b = counted_from(p->facts[i].b, at, now);
	if (p->join)
		certify_write_list(p);
}

/* The places become as many in the order in which they were run. */
static void sort(struct certify *k)
{
	const struct unfolding *u = k->unfold;
	struct place *sorted = calloc(k->count, sizeof(*sorted));
	uint32_t *now = calloc(k->count, sizeof(*now));

	if (!sorted || !now)
		abort();
	for (uint32_t i = 0; i < k->count; i++)
		now[u->sequence[i]] = i;
	for (uint32_t i = 0; i < k->count; i++) {
		move_counts(&k->places[i], i, now);
		sorted[now[i]] = k->places[i];
	}
	for (uint32_t i = 0; i < k->count; i++) {
		for (unsigned side = 0; side < 2; side++)
			if (sorted[i].to[side] != FAY_NONE)
				sorted[i].to[side] = now[sorted[i].to[side]];
		for (uint32_t j = 0; j < sorted[i].table_count; j++)
			sorted[i].table[j] = now[sorted[i].table[j]];
	}
	free(k->places);
	free(now);
	k->places = sorted;
}

bool certify_unfold(struct fay_certify *c, enum effort effort, const uint8_t *treat, uint64_t *runs,
		    uint32_t *failed, struct fay_bytes *out)
{
	struct unfolding u = { .treat = treat,
			       .room = c->graph->node_count + UNFOLD_PLACES,
			       .first = FAY_NONE,
			       .open = FAY_NONE };
	struct certify k = { .c = c, .effort = effort, .most = *runs, .unfold = &u };
	struct fay_probe_facts facts = { 0 };
	bool ok;

	c->refusal.rule = FAY_RULE_NONE;
	u.next = calloc(u.room, sizeof(*u.next));
	u.sequence = calloc(u.room, sizeof(*u.sequence));
	if (!u.next || !u.sequence)
		abort();
	certify_begin(&k, u.room, &facts);
	certify_deliver(&k, 0, certify_unfold_edge(&k, FAY_NONE, 0, 0));
	ok = certify_unfold_loop(&k, FAY_NONE);
	*failed = k.places[k.at].node;
	*runs -= k.runs < *runs ? k.runs : *runs;
	c->spent += k.runs;
	ok = ok && lead_everywhere(&k);
	if (ok) {
		sort(&k);
		certify_put(&k, out);
	}
	certify_end(&k);
	free(u.next);
	free(u.sequence);
	return ok;
}
