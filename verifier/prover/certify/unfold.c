/* SPDX-License-Identifier: MIT */
/*
 * Loops written out: each round of a loop gets places of its own, so that no head needs a list or a
 * measure. What differs from round to round stays as it is in each: a counter is a constant, bytes
 * of the stack that were written are known one by one. In a certificate that is straight code.
 *
 * A place is a node of the graph at a *turn*: how often the head of each loop around it was come
 * back to. Turns are in order, and every edge leads to a later one, so places are run in the order
 * of turns, and that is their order in the certificate.
 */
#include "certify_parts.h"

#define UNFOLD_PLACES 6000u

/* For each loop around a node, the outermost first, where its head is in the order of the graph,
 * and the round; last where the node is. */
struct turn {
	uint32_t size, at[2 * NEST_MOST + 1];
};

struct unfolding {
	bool apart;
	uint32_t *next;           /* per place: the next that waits, by turns */
	uint32_t first;           /* that waits; FAY_NONE: none */
	uint32_t *sequence, done; /* places as they were run */
};

/* False: too many loops within each other. */
static bool find_turn(const struct certify *k, const struct turn *from, uint32_t node,
		      struct turn *t)
{
	const struct fay_graph *graph = k->c->graph;
	uint32_t loops[NEST_MOST], depth = 0;
	bool common = from != NULL;

	for (uint32_t h = fay_graph_loop(graph, node); h != FAY_NONE; h = graph->nodes[h].header) {
		if (depth == NEST_MOST)
			return false;
		loops[depth++] = h;
	}
	t->size = 0;
	while (depth--) {
		uint32_t head = k->order.of[loops[depth]], i = t->size;

		common = common && i + 1 < from->size && from->at[i] == head;
		t->at[i] = head;
		t->at[i + 1] = common ? from->at[i + 1] + (loops[depth] == node) : 0;
		t->size += 2;
	}
	t->at[t->size++] = k->order.of[node];
	return true;
}

static int compare(const struct turn *a, const struct turn *b)
{
	for (uint32_t i = 0; i < a->size && i < b->size; i++)
		if (a->at[i] != b->at[i])
			return a->at[i] < b->at[i] ? -1 : 1;
	return 0;
}

static bool constant(const struct value *v)
{
	return certify_numeric(v) && !v->f.v[0];
}

/* Whether both states may meet: no place that is read still has another constant. */
static bool alike(const struct certify *k, uint32_t node, struct state *a, struct state *b)
{
	uint32_t live = k->c->live ? k->c->live[node] : UINT32_MAX;

	for (unsigned i = 0; i < 16u + certify_slots(a); i++) {
		const struct value *x = i < 16 ? &a->reg[i] : &a->slot[i - 16].v;
		const struct value *y =
			walk_locate(b, i < 16 ? i : certify_location_of(&a->slot[i - 16]));

		if ((i >= 16 || live >> i & 1) && constant(x) && constant(y) && x->f.c != y->f.c)
			return false;
	}
	return true;
}

static uint32_t make_place(struct certify *k, uint32_t node, const struct turn *turn)
{
	struct place *p = &k->places[k->count];

	if (k->count == UNFOLD_PLACES)
		return FAY_NONE;
	certify_make_place(k, k->count, node);
	p->plain = true;
	p->to[0] = p->to[1] = FAY_NONE;
	p->turn = malloc(sizeof(*p->turn));
	if (!p->turn)
		abort();
	*p->turn = *turn;
	return k->count++;
}

uint32_t certify_unfold_edge(struct certify *k, uint32_t from, uint32_t node)
{
	struct unfolding *u = k->unfold;
	uint32_t *link = &u->first, to;
	struct turn turn;

	if (!find_turn(k, from == FAY_NONE ? NULL : k->places[from].turn, node, &turn))
		return FAY_NONE;
	for (; *link != FAY_NONE; link = &u->next[*link]) {
		struct place *p = &k->places[*link];
		int order = compare(&turn, p->turn);

		if (order < 0)
			break;
		if (!order && (!u->apart || alike(k, node, p->in->s, &k->w->m.s)))
			return *link;
	}
	to = make_place(k, node, &turn);
	if (to == FAY_NONE)
		return to;
	u->next[to] = *link;
	*link = to;
	return to;
}

static bool run_all(struct certify *k)
{
	struct unfolding *u = k->unfold;
	uint32_t at = certify_unfold_edge(k, FAY_NONE, 0);

	certify_deliver(k, 0, at);
	while (u->first != FAY_NONE) {
		at = u->first;
		u->first = u->next[at];
		u->sequence[u->done++] = at;
		if (!certify_process_place(k, at))
			return false;
	}
	return true;
}

/* A place for where no way leads: one of the same code, or one that is never come to. */
static uint32_t dead_place(struct certify *k, uint32_t *of_block, uint32_t node)
{
	static const struct turn nowhere;
	uint32_t *of = &of_block[k->c->graph->nodes[node].block];

	if (*of == FAY_NONE) {
		*of = make_place(k, node, &nowhere);
		if (*of != FAY_NONE)
			k->unfold->sequence[k->unfold->done++] = *of;
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
		of_block[k->c->graph->nodes[k->places[i].node].block] = i;
	for (uint32_t i = 0; ok && i < k->count; i++) {
		const struct fay_node *n = &k->c->graph->nodes[k->places[i].node];

		for (unsigned side = 0; ok && side < 2; side++) {
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

/* The places become as many in the order in which they were run. */
static void sort(struct certify *k)
{
	const struct unfolding *u = k->unfold;
	struct place *sorted = calloc(k->count, sizeof(*sorted));
	uint32_t *now = calloc(k->count, sizeof(*now));

	if (!sorted || !now)
		abort();
	for (uint32_t i = 0; i < k->count; i++) {
		sorted[i] = k->places[u->sequence[i]];
		now[u->sequence[i]] = i;
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

bool certify_unfold(struct fay_certify *c, bool apart, struct fay_bytes *out)
{
	struct unfolding u = { .apart = apart, .first = FAY_NONE };
	struct certify k = { .c = c, .effort = EFFORT_RELATED, .unfold = &u };
	struct fay_probe_facts facts = { 0 };
	bool ok;

	/* a mispredicted run may go around for ever; without loops there are only ways to part */
	if (c->graph->loop_count ? c->mispredicted : !apart)
		return false;
	c->refusal.rule = FAY_RULE_NONE;
	u.next = calloc(UNFOLD_PLACES, sizeof(*u.next));
	u.sequence = calloc(UNFOLD_PLACES, sizeof(*u.sequence));
	if (!u.next || !u.sequence)
		abort();
	certify_begin(&k, UNFOLD_PLACES, &facts);
	ok = run_all(&k) && lead_everywhere(&k);
	if (ok) {
		sort(&k);
		certify_put(&k, out);
	}
	for (uint32_t i = 0; i < k.count; i++)
		free(k.places[i].turn);
	certify_end(&k);
	free(u.next);
	free(u.sequence);
	return ok;
}
