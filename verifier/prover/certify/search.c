/* SPDX-License-Identifier: MIT */
/*
 * What has to be told apart, found by trying: where the writer gives up, the ways that lead there
 * are kept apart for some nodes before, or the loop around is written out, and it tries again.
 */
#include "certify_parts.h"

#define TRIES 40u
#define RUNS 60000u         /* of nodes, in all */
#define RUNS_HOPEFUL 1000u  /* where nobody has proved anything: what this effort finds is near */
#define RUNS_UNPROVED 4000u /* of these, with all loops written out that nobody has proved short */
#define RUNS_ROLLED 2500u   /* of these, with no loop written out, each way */

struct search {
	struct fay_certify *c;
	uint8_t *treat; /* per node */
	uint8_t *level; /* per node: how often it gave up there */
	uint32_t *list; /* nodes, of which the edges before are followed */
	uint64_t runs;  /* that are left */
	uint8_t order;  /* 0 or TREAT_ORDER, beside all cases */
	bool rolled;    /* no loop is written out that was refused within */
	bool meet;      /* neither ways nor cases are told apart */
};

/* The node, and those from which it is reached by so many edges, are treated so. False: they were
 * already. */
static bool treat_before(struct search *s, uint32_t node, unsigned edges, uint8_t how)
{
	const struct fay_graph *g = s->c->graph;
	uint32_t begin = 0, end = 1, next;
	uint8_t *seen = calloc(g->node_count, 1);
	bool new = false;

	if (!seen)
		abort();
	s->list[0] = node;
	seen[node] = 1;
	for (unsigned round = 0; round <= edges; round++) {
		next = end;
		for (; begin < next; begin++) {
			const struct fay_node *n = &g->nodes[s->list[begin]];

			new |= how & ~s->treat[s->list[begin]];
			s->treat[s->list[begin]] |= how;
			for (uint32_t i = 0; i < n->pred_count; i++) {
				uint32_t pred = g->preds[n->first_pred + i];

				if (!seen[pred])
					s->list[end++] = pred;
				seen[pred] = 1;
			}
		}
	}
	free(seen);
	return new;
}

/* The innermost loop around the node that is not written out yet is. False: there is none. */
static bool write_out(struct search *s, uint32_t node)
{
	const struct fay_graph *g = s->c->graph;
	uint32_t head = fay_graph_loop(g, node);

	while (head != FAY_NONE && s->treat[head] & TREAT_WRITTEN_OUT)
		head = g->nodes[head].header;
	if (head == FAY_NONE)
		return false;
	s->treat[head] |= TREAT_WRITTEN_OUT;
	for (uint32_t i = 0; i < g->node_count; i++)
		if (fay_graph_in_loop(g, i, head))
			s->treat[i] |= TREAT_CONSTANTS | TREAT_CASES;
	return true;
}

/* What cases make too many meets again. False: it does already. */
static bool rejoin(struct search *s)
{
	bool more = false;

	for (uint32_t i = 0; i < s->c->graph->node_count; i++) {
		more |= s->treat[i] & TREAT_CASES && !(s->treat[i] & TREAT_REJOIN);
		s->treat[i] |= TREAT_REJOIN;
	}
	return more;
}

/* It gave up at `node`. False: there is nothing more to try. */
static bool refine(struct search *s, uint32_t node)
{
	unsigned level = s->level[node]++;
	uint8_t how = s->order | (s->meet ? 0 : TREAT_APART | TREAT_CASES);

	switch (s->c->refusal.rule) {
	case FAY_RULE_LIM_RESOURCE:
	case FAY_RULE_CRT_NODE: return rejoin(s);
	case FAY_RULE_TRM_LOOP:
	case FAY_RULE_CRT_JOIN:
		if (!(s->order & TREAT_THREE && level < 2) && !s->rolled && write_out(s, node))
			return true;
		break;
	case FAY_RULE_STK_POINTER: return false;
	default: break;
	}
	for (; level <= 6; level++) {
		s->level[node] = (uint8_t)(level + 1);
		if ((level % 2 && !s->rolled && write_out(s, node)) ||
		    treat_before(s, node, 2u << level, how))
			return true;
	}
	return false;
}

static bool attempt(struct search *s, enum effort effort, uint32_t *failed, struct fay_bytes *out)
{
	struct fay_certify *c = s->c;
	uint64_t left = c->until > c->spent ? c->until - c->spent : 0;
	size_t begin = out->size;
	bool ok;

	if (c->sums && c->until && s->runs > left)
		s->runs = left;
	ok = certify_unfold(c, effort, s->treat, &s->runs, failed, out);
	return ok && certify_holds(c, begin, out);
}

/* All loops written out. */
static bool all_written_out(struct search *s, enum effort effort, struct fay_bytes *out)
{
	const struct fay_graph *g = s->c->graph;
	uint32_t failed;

	if (g->loop_count) {
		memset(s->treat, TREAT_WRITTEN_OUT, g->node_count);
		if (attempt(s, effort, &failed, out))
			return true;
	}
	memset(s->treat, TREAT_WRITTEN_OUT | TREAT_CONSTANTS, g->node_count);
	if (attempt(s, effort, &failed, out))
		return true;
	memset(s->treat, TREAT_WRITTEN_OUT | TREAT_CONSTANTS | TREAT_CASES, g->node_count);
	return s->c->sums && attempt(s, effort, &failed, out);
}

/* Begins with nothing told apart, and tells apart what it gives up at. */
static bool refine_all(struct search *s, enum effort effort, struct fay_bytes *out)
{
	struct fay_certify *c = s->c;
	bool ok = false, more = !c->mispredicted;
	uint32_t failed;

	memset(s->treat, 0, c->graph->node_count);
	memset(s->level, 0, c->graph->node_count);
	for (unsigned i = 0; i < TRIES && !ok && !c->found_count && more; i++) {
		ok = attempt(s, effort, &failed, out);
		more = ok || (!c->found_count && refine(s, failed));
	}
	return ok;
}

/* The same with all that facts say, and nothing told apart: that takes little. */
static bool refine_met(struct search *s, enum effort effort, struct fay_bytes *out)
{
	bool ok;

	s->order = TREAT_THREE | TREAT_FACTS;
	s->rolled = s->meet = true;
	ok = refine_all(s, effort, out);
	s->rolled = s->meet = false;
	s->order = 0;
	return ok;
}

/* The same without loops that are written out, where nothing else helped. */
static bool refine_rolled(struct search *s, struct fay_bytes *out)
{
	static const uint8_t orders[] = { 0, TREAT_ORDER, TREAT_THREE | TREAT_FACTS };
	struct check_refusal why = s->c->refusal;
	bool ok = false;

	s->rolled = s->c->last = true;
	for (unsigned i = 0; i < 6 && !ok && !s->c->found_count; i++) {
		s->order = orders[i % 3];
		s->runs = RUNS_ROLLED;
		ok = refine_all(s, i < 3 ? EFFORT_RELATED : EFFORT_HOPEFUL, out);
	}
	s->c->last = false;
	if (!ok)
		s->c->refusal = why;
	return ok;
}

bool certify_search(struct fay_certify *c, enum effort effort, struct fay_bytes *out)
{
	uint32_t nodes = c->graph->node_count;
	struct search s = { .c = c,
			    .treat = calloc(nodes, 1),
			    .level = calloc(nodes, 1),
			    .list = calloc(nodes, sizeof(*s.list)),
			    .runs = RUNS };
	uint64_t early = c->runs / (c->sums ? 20 : 2);
	bool ok, few = effort == EFFORT_HOPEFUL && c->runs;

	if (!s.treat || !s.level || !s.list)
		abort();
	/* a mispredicted run may go around for ever, and its branches tell nothing */
	if (!c->hint)
		s.runs = c->early ? early : few ? RUNS_HOPEFUL : RUNS_UNPROVED;
	ok = c->sums && refine_met(&s, effort, out);
	ok = ok || (!c->mispredicted && all_written_out(&s, effort, out));
	if (!c->hint)
		s.runs = c->early ? early : few ? RUNS_HOPEFUL : c->runs ? c->runs : RUNS;
	ok = ok || refine_all(&s, effort, out);
	s.order = TREAT_ORDER;
	ok = ok || refine_all(&s, effort, out);
	for (unsigned more = 0; more < 3; more++) { /* alone; with facts; and loops as they are */
		s.order = TREAT_THREE | (more ? TREAT_FACTS : 0);
		s.rolled = more == 2;
		if (!c->hint && !c->runs)
			s.runs = RUNS;
		ok = ok || refine_all(&s, effort, out);
	}
	if (!ok && !c->hint && !c->early && effort == EFFORT_HOPEFUL)
		ok = refine_rolled(&s, out);
	free(s.treat);
	free(s.level);
	free(s.list);
	return ok;
}
