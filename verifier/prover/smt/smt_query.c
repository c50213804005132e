/* SPDX-License-Identifier: MIT */
/*
 * A query: the acyclic piece of the probe's graph from a cut point to the obligation, walked in
 * step with the abstract interpretation, paths merged with if-then-else, and the negated goal.
 */
#include <stdlib.h>
#include <string.h>

#include "smt_terms.h"

#define MAX_REGION_NODES 1024u
#define MAX_REGION_INSNS 20000u
#define NEAR_INSNS 48u

void fay_smt_assume(struct query *q, Z3_ast fact)
{
	if (q->fact_count == q->fact_capacity) {
		unsigned capacity = q->fact_capacity ? 2 * q->fact_capacity : 64;
		void *grown = realloc(q->facts, capacity * sizeof(*q->facts));

		if (!grown) {
			q->failed = true; /* fewer facts are sound, but say so */
			return;
		}
		q->facts = grown;
		q->fact_capacity = capacity;
	}
	q->facts[q->fact_count++] = fact;
}

/* ---- the region ---- */

uint32_t fay_smt_cut(const struct fay_analysis *an, uint32_t target)
{
	uint32_t loop = fay_graph_loop(an->graph, target);

	return loop == FAY_NONE ? 0 : loop;
}

uint32_t fay_smt_near_cut(const struct fay_analysis *an, uint32_t target, uint32_t cut)
{
	const struct fay_graph *g = an->graph;
	uint8_t *in = calloc(target - cut + 1, 1);
	uint32_t found = cut, marked = 1, insns = 0;

	if (!in)
		return cut;
	in[target - cut] = 1;
	for (uint32_t node = target + 1; node-- > cut && insns <= NEAR_INSNS;) {
		const struct fay_node *n = &g->nodes[node];

		if (!in[node - cut])
			continue;
		insns += an->cfg->blocks[n->block].count;
		if (--marked == 0 && (insns <= NEAR_INSNS || node == target))
			found = node; /* nothing else leads to what was walked */
		for (uint32_t i = 0; i < n->pred_count; i++) {
			uint32_t from = g->preds[n->first_pred + i];

			if (from >= node || from < cut || in[from - cut] || !an->in[from])
				continue;
			in[from - cut] = 1;
			marked++;
		}
	}
	free(in);
	return found;
}

/* The marked nodes that are reached, if they are not too many. */
static bool list_nodes(struct query *q, const uint8_t *in)
{
	uint32_t span = q->target - q->cut + 1, count = 0, insns = 0;

	for (uint32_t i = 0; i < span; i++)
		if (in[i] && q->an->in[q->cut + i]) {
			count++;
			insns += q->an->cfg->blocks[q->an->graph->nodes[q->cut + i].block].count;
		}
	if (count > MAX_REGION_NODES || insns > MAX_REGION_INSNS || !in[0])
		return false;
	q->position = calloc(span, sizeof(*q->position));
	q->nodes = calloc(count, sizeof(*q->nodes));
	q->entry = calloc(count, sizeof(*q->entry));
	if (!q->position || !q->nodes || !q->entry)
		return false;
	for (uint32_t i = 0; i < span; i++)
		if (in[i] && q->an->in[q->cut + i]) {
			q->nodes[q->node_count] = q->cut + i;
			q->position[i] = ++q->node_count;
		}
	return true;
}

bool fay_smt_find_region(struct query *q)
{
	const struct fay_graph *g = q->an->graph;
	uint8_t *in = calloc(q->target - q->cut + 1, 1);
	bool ok;

	if (!in)
		return false;
	in[q->target - q->cut] = 1;
	for (uint32_t node = q->target + 1; node-- > q->cut;) {
		const struct fay_node *n = &g->nodes[node];

		if (!in[node - q->cut] || !q->an->in[node])
			continue;
		for (uint32_t i = 0; node != q->cut && i < n->pred_count; i++) {
			uint32_t from = g->preds[n->first_pred + i];

			if (from < node && from >= q->cut)
				in[from - q->cut] = 1;
		}
	}
	ok = list_nodes(q, in);
	free(in);
	return ok;
}

bool fay_smt_find_loop(struct query *q)
{
	uint32_t span = q->target - q->cut + 1;
	uint8_t *in = calloc(span, 1);
	bool ok;

	if (!in)
		return false;
	for (uint32_t i = 0; i < span; i++)
		in[i] = fay_graph_in_loop(q->an->graph, q->cut + i, q->cut);
	ok = list_nodes(q, in);
	free(in);
	return ok;
}

static Z3_ast merge(struct query *q, Z3_ast condition_new, Z3_ast value_new, Z3_ast value_old)
{
	return value_new == value_old ? value_old
				      : Z3_mk_ite(q->z, condition_new, value_new, value_old);
}

/* Adds the current terms as one way into `to`, taken if `way`. */
static void flow(struct query *q, uint32_t to, Z3_ast way)
{
	struct sym *s;

	if (to < q->cut || to > q->target || !q->position[to - q->cut] ||
	    (to == q->cut && !q->again))
		return;
	s = to == q->cut ? q->again : &q->entry[q->position[to - q->cut] - 1];
	way = both(q, q->now.condition, way);
	if (!s->condition) {
		Z3_ast *slots = calloc(q->now.slots + 1, sizeof(*slots));

		if (!slots) {
			q->failed = true;
			return;
		}
		*s = q->now;
		s->condition = way;
		s->slot = slots;
		memcpy(slots, q->now.slot, q->now.slots * sizeof(*slots));
		return;
	}
	for (unsigned r = 0; r < 16; r++)
		s->reg[r] = merge(q, way, q->now.reg[r], s->reg[r]);
	for (unsigned f = 0; f < FLAGS; f++)
		s->flag[f] = merge(q, way, q->now.flag[f], s->flag[f]);
	for (uint32_t i = 0; i < s->slots && i < q->now.slots; i++)
		s->slot[i] = merge(q, way, q->now.slot[i], s->slot[i]);
	s->condition = either(q, s->condition, way);
}

/*
 * To any of its places, whatever the index, but to one of them: where ways meet again, what came
 * along one is told from what came along another by their conditions, which must exclude each
 * other.
 */
static void flow_table(struct query *q, const struct fay_node *n)
{
	Z3_ast others = Z3_mk_true(q->z);

	for (uint32_t k = 0; k < n->table_count; k++) {
		Z3_ast chosen = fresh_bool(q);

		flow(q, n->table[k], both(q, others, chosen));
		others = both(q, others, negate(q, chosen));
	}
}

/* ---- the goal ---- */

Z3_ast fay_smt_goal(struct query *q, const struct fay_obligation *o, const struct fay_insn *insn)
{
	const struct fay_operand *mem = insn->dst.kind == OPERAND_MEM ? &insn->dst : &insn->src;
	unsigned w = insn->width;
	Z3_ast a, b, c;

	switch (o->goal) {
	case GOAL_BOUNDS:
		a = fay_smt_address(q, mem);
		return both(q, Z3_mk_bvsge(q->z, a, bits(q, (uint64_t)o->low, 64)),
			    Z3_mk_bvsle(q->z, a, bits(q, (uint64_t)o->high, 64)));
	case GOAL_DIVIDE:
		a = low_bits(q, q->now.reg[FAY_RAX], w);
		b = w == 8 ? Z3_mk_extract(q->z, 15, 8, q->now.reg[FAY_RAX])
			   : low_bits(q, q->now.reg[FAY_RDX], w);
		c = fay_smt_read(q, &insn->src, w);
		if (insn->op == OP_DIV)
			return both(q, negate(q, Z3_mk_eq(q->z, c, bits(q, 0, w))),
				    Z3_mk_bvult(q->z, b, c));
		/* A sign-extended dividend, and neither 0 nor the one overflow: enough, and exact
		 * after cqo. */
		return both(q,
			    both(q, Z3_mk_eq(q->z, b, Z3_mk_bvashr(q->z, a, bits(q, w - 1, w))),
				 negate(q, Z3_mk_eq(q->z, c, bits(q, 0, w)))),
			    negate(q, both(q, Z3_mk_eq(q->z, a, bits(q, (uint64_t)1 << (w - 1), w)),
					   Z3_mk_eq(q->z, c, bits(q, UINT64_MAX, w)))));
	case GOAL_DIFFERS:
		return negate(q, Z3_mk_eq(q->z, q->now.reg[o->reg], bits(q, (uint64_t)o->low, 64)));
	default: return Z3_mk_false(q->z);
	}
}

/* Runs one node's block; at the obligation's place adds the negated goal and stops. */
static bool run_node(struct query *q, uint32_t node)
{
	struct fay_analysis *an = q->an;
	const struct fay_node *n = &an->graph->nodes[node];
	const struct fay_block *block = &an->cfg->blocks[n->block];
	enum fay_cc cc;

	fay_state_copy(an->current, an->in[node]);
	for (uint32_t i = 0; i < block->count; i++) {
		const struct fay_insn *insn = &an->cfg->insns[block->first + i];

		an->node = node;
		an->insn = block->first + i;
		q->loaded_mem = NULL;
		if (q->o && node == q->target && an->insn == q->o->insn) {
			fay_smt_assume(q, both(q, q->now.condition,
					       negate(q, fay_smt_goal(q, q->o, insn))));
			return true;
		}
		fay_smt_step(q, insn);
		if (q->fresh_count > FAY_SMT_MAX_UNKNOWNS ||
		    q->table_terms > FAY_SMT_MAX_TABLE_TERMS) {
			q->failed = true;
			return false;
		}
		if (!fay_transfer_step(an, node, block->first + i))
			return false;
		fay_smt_after(q, insn);
		if (i + 1 < block->count)
			continue;
		if (fay_node_branches(an, node, &cc)) {
			Z3_ast c = fay_smt_condition(q, cc);

			flow(q, n->succ[0], c);
			flow(q, n->succ[1], negate(q, c));
		} else if (n->table) {
			flow_table(q, n);
		} else if (n->succ[0] != FAY_NONE) {
			flow(q, n->succ[0], Z3_mk_true(q->z));
		}
	}
	return false;
}

bool fay_smt_build(struct query *q)
{
	bool reached = false;

	for (uint32_t i = 0; i < q->node_count && !q->failed; i++) {
		uint32_t node = q->nodes[i];
		struct sym *s = &q->entry[i];

		if (node == q->cut) {
			q->now.condition = Z3_mk_true(q->z);
			fay_smt_fresh_state(q, q->an->in[node]);
			memcpy(q->start, q->now.reg, sizeof(q->start));
			for (uint32_t k = 0; k < q->ranked_count; k++)
				q->ranked_terms[k] =
					fay_smt_location(q, q->an->in[node], q->ranked[k]);
		} else if (!s->condition) {
			continue; /* no feasible way in */
		} else if (q->an->graph->nodes[node].is_header) {
			/* Another loop on the way: only its invariant, and that it was entered. */
			q->now.condition = s->condition;
			q->inner_cut = true;
			fay_smt_fresh_state(q, q->an->in[node]);
		} else {
			q->now.condition = s->condition;
			memcpy(q->now.reg, s->reg, sizeof(s->reg));
			memcpy(q->now.flag, s->flag, sizeof(s->flag));
			q->now.slots = s->slots;
			memcpy(q->now.slot, s->slot, s->slots * sizeof(*s->slot));
		}
		reached |= run_node(q, node);
		q->failed |= Z3_get_error_code(q->z) != Z3_OK;
		q->failed |= q->an->deadline && fay_monotonic_ns() > q->an->deadline;
	}
	if (!reached && q->o)
		fay_smt_assume(q, Z3_mk_false(q->z)); /* no way leads there */
	return !q->failed;
}
