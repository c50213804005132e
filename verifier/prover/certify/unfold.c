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

uint8_t certify_treat(const struct certify *k, const struct place *p)
{
	return k->unfold ? k->unfold->treat[p->node] : 0;
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
