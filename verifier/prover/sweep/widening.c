/* SPDX-License-Identifier: MIT */
/*
 * What the sweep (sweep.c) guesses of a loop's head. Values that the loop compares, or copies of
 * them, grow to the numbers that they are compared with where the loop may be left, twice; then to
 * any of the loop's own numbers; all others, and what still grows then, as far as they can at once,
 * because each round costs as much as the last one. Where a nest is run with relations, all values
 * stop at the loop's own numbers for some rounds. Nothing here is trusted.
 */
#include "widening.h"

#include <string.h>

#define ROUNDS_OWN 2u   /* of numbers that the value itself is compared with */
#define ROUNDS_BITS 5u  /* in which low bits may be known */
#define NODES_MAX 4096u /* of a loop, that are looked at */
#define COMPARED_MEMORY (1u << 16)

/* In which values stop at the loop's own numbers. */
static const unsigned rounds_of_loop[] = {
	[SWEEP_PLAIN] = 3, [SWEEP_RELATED] = 5, [SWEEP_FINE] = 12
};
static const struct fay_thresholds coarse = { .count = 3, .values = { -1, 0, UINT32_MAX } };

/* Every counter that begins at 0 comes by 1: unless the code speaks of it, no place to stop. */
static void leave_out(struct fay_thresholds *t, int64_t value)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < t->count; i++)
		if (t->values[i] != value)
			t->values[kept++] = t->values[i];
	t->count = kept;
}

void fay_widening_init(struct fay_widening *w, const struct fay_image *image)
{
	fay_thresholds_common(&w->common, image);
	leave_out(&w->common, 1);
}

/* ---- what a loop compares ---- */

static uint32_t bearer_of(const struct fay_operand *o)
{
	return o->kind == OPERAND_REG   ? 1u << (o->reg & 15)
	       : o->kind == OPERAND_MEM ? COMPARED_MEMORY
					: 0;
}

static void unite(struct fay_widening *w, unsigned a, unsigned b)
{
	uint8_t from = w->kin[a & 15], to = w->kin[b & 15];

	for (unsigned r = 0; r < 16 && from != to; r++)
		if (w->kin[r] == from)
			w->kin[r] = to;
}

static bool varies(const struct fay_value *v)
{
	return fay_value_numeric(v) && !fay_scalar_is_const(&v->s);
}

static void find_copies(struct fay_widening *w, const struct fay_insn *insn)
{
	bool copies = insn->op == OP_MOV || insn->op == OP_MOVZX || insn->op == OP_MOVSX ||
		      insn->op == OP_CMOV;

	if (copies && insn->dst.kind == OPERAND_REG && insn->src.kind == OPERAND_REG)
		unite(w, insn->dst.reg, insn->src.reg);
	else if (insn->op == OP_LEA && insn->dst.kind == OPERAND_REG && insn->src.base < 16 &&
		 insn->src.base != FAY_RSP && insn->src.index == FAY_NO_REG)
		unite(w, insn->dst.reg, insn->src.base);
}

static void limit(struct fay_widening *w, uint32_t bearer, int64_t low, int64_t high, bool reached)
{
	if (bearer && w->limit_count < sizeof(w->limits) / sizeof(w->limits[0]))
		w->limits[w->limit_count++] = (struct fay_widening_limit){
			.bearer = bearer, .low = low, .high = high, .reached = reached
		};
}

/* `of` is compared with `by`. */
static void limit_by(struct fay_widening *w, const struct fay_operand *of,
		     const struct fay_operand *by, const struct fay_state *entered, bool reached)
{
	const struct fay_value *v = by->kind == OPERAND_REG ? &entered->loc[by->reg & 15] : NULL;

	if (by->kind == OPERAND_IMM)
		limit(w, bearer_of(of), by->imm, by->imm, reached);
	if (v && fay_value_numeric(v) && v->s.smax < INT32_MAX && v->s.smin > INT32_MIN)
		limit(w, bearer_of(of), v->s.smin, v->s.smax, reached);
}

/* Whether a way out of the loop begins at the end of `node`. */
static bool leaves(const struct fay_analysis *an, const struct fay_order *order, uint32_t head,
		   uint32_t node)
{
	const struct fay_node *n = &an->graph->nodes[node];

	for (uint32_t k = 0; k < fay_node_fanout(n); k++) {
		uint32_t to = fay_node_succ(n, k);

		if (to != FAY_NONE &&
		    (order->of[to] < order->of[head] || order->of[to] >= order->end[head]))
			return true;
	}
	return false;
}

/* The comparison that the jump at the end of `block` asks, mostly; NULL: there is none. */
static const struct fay_insn *asked(const struct fay_block *block, const struct fay_insn *insns)
{
	const struct fay_insn *last = &insns[block->first + block->count - 1];

	return block->count > 1 && last->op == OP_JCC && last[-1].op == OP_CMP ? &last[-1] : NULL;
}

bool fay_widening_needs_relations(const struct fay_analysis *an, const struct fay_order *order,
				  uint32_t head, const struct fay_state *entered)
{
	uint32_t end = order->end[head];
	bool found = false;

	if (end - order->of[head] > NODES_MAX)
		return false;
	for (uint32_t at = order->of[head]; at < end; at++) {
		const struct fay_insn *cmp = asked(
			&an->cfg->blocks[an->graph->nodes[order->at[at]].block], an->cfg->insns);

		if (!cmp || cmp->dst.kind != OPERAND_REG || !leaves(an, order, head, order->at[at]))
			continue;
		if (cmp->src.kind == OPERAND_IMM)
			return false;
		found |= cmp->src.kind == OPERAND_REG &&
			 (cmp[1].cc == CC_E || cmp[1].cc == CC_NE) &&
			 (varies(&entered->loc[cmp->dst.reg & 15]) ||
			  varies(&entered->loc[cmp->src.reg & 15]));
	}
	return found;
}

/* Whether `block`, which heads the loop, compares what it has not changed yet. */
static bool compares_first(const struct fay_block *block, const struct fay_insn *insns)
{
	const struct fay_insn *cmp = asked(block, insns);

	for (const struct fay_insn *insn = &insns[block->first]; cmp && insn < cmp; insn++)
		if (insn->dst.kind == OPERAND_REG && fay_op_table[insn->op].dst_written &&
		    (bearer_of(&insn->dst) & (bearer_of(&cmp->dst) | bearer_of(&cmp->src))))
			return false;
	return cmp;
}

static void find_compared(struct fay_widening *w, const struct fay_block *block,
			  const struct fay_insn *insns, bool leaves, bool heads,
			  const struct fay_state *entered)
{
	bool reached = leaves && heads && compares_first(block, insns);

	for (uint32_t i = block->first; i < block->first + block->count; i++) {
		const struct fay_insn *insn = &insns[i];

		find_copies(w, insn);
		if (insn->op != OP_CMP && insn->op != OP_TEST)
			continue;
		w->compared |= bearer_of(&insn->dst) | bearer_of(&insn->src);
		if (insn->op == OP_CMP && leaves) {
			limit_by(w, &insn->dst, &insn->src, entered, reached);
			limit_by(w, &insn->src, &insn->dst, entered, reached);
		}
	}
}

void fay_widening_loop(struct fay_widening *w, const struct fay_analysis *an,
		       const struct fay_order *order, uint32_t head,
		       const struct fay_state *entered)
{
	uint32_t end = order->end[head];
	bool large = end - order->of[head] > NODES_MAX;

	w->head = head;
	w->an = an;
	w->entered = entered;
	w->loop_known = false;
	w->limit_count = 0;
	w->compared = large ? UINT32_MAX : 0;
	for (uint8_t r = 0; r < 16; r++)
		w->kin[r] = r;
	for (uint32_t at = order->of[head]; !large && at < end; at++)
		find_compared(w, &an->cfg->blocks[an->graph->nodes[order->at[at]].block],
			      an->cfg->insns, leaves(an, order, head, order->at[at]),
			      order->at[at] == head, entered);
}

/* ---- growing ---- */

/* As in `compared`: location i. */
static uint32_t bearer_at(uint32_t i)
{
	return i < 16 ? 1u << i : COMPARED_MEMORY;
}

/* The registers that location i is copied from or to, and itself. */
static uint32_t copies_of(const struct fay_widening *w, uint32_t i)
{
	uint32_t found = 0;

	if (i >= 16)
		return COMPARED_MEMORY;
	for (unsigned r = 0; r < 16; r++)
		found |= (uint32_t)(w->kin[r] == w->kin[i]) << r;
	return found;
}

/* Which way a value grows: at a limit that varies it stops at the farther end. */
struct growth {
	bool up, down;
};

static void add_limit(struct fay_thresholds *t, int64_t value, bool reached)
{
	if (reached)
		fay_thresholds_add_one(t, value);
	else
		fay_thresholds_add(t, value);
}

static void add_limits(const struct fay_widening *w, uint32_t bearers, struct growth g,
		       struct fay_thresholds *t)
{
	t->count = 0;
	for (uint32_t i = 0; i < w->limit_count; i++) {
		const struct fay_widening_limit *l = &w->limits[i];

		if (g.up && l->bearer & bearers)
			add_limit(t, l->high, l->reached);
		if (g.down && l->bearer & bearers)
			add_limit(t, l->low, l->reached);
	}
}

/* The numbers that location i, or else a copy of it, is compared with where the loop may be left.
 * */
static void own_thresholds(const struct fay_widening *w, uint32_t i, struct growth g,
			   struct fay_thresholds *t)
{
	add_limits(w, bearer_at(i), g, t);
	if (!t->count)
		add_limits(w, copies_of(w, i), g, t);
}

/* What a shift makes less of in every round. */
static void forget_low_bits(struct fay_scalar *s)
{
	s->value = 0;
	s->unknown = UINT64_MAX;
	s->modulus = 1;
	s->remainder = 0;
	fay_scalar_normalise(s);
}

static const struct fay_thresholds *loop_thresholds(struct fay_widening *w)
{
	if (w->loop_known)
		return &w->loop;
	w->loop.count = w->common.count;
	memcpy(w->loop.values, w->common.values, w->common.count * sizeof(w->common.values[0]));
	fay_thresholds_add_loop(&w->loop, w->an, w->head, w->entered);
	w->loop_known = true;
	return &w->loop;
}

static const struct fay_thresholds *thresholds(struct fay_widening *w, uint32_t i, unsigned round,
					       enum fay_sweep_mode mode, struct growth g,
					       struct fay_thresholds *own)
{
	if (round > rounds_of_loop[mode] ||
	    (mode == SWEEP_PLAIN && !(w->compared & copies_of(w, i))))
		return &coarse;
	if (round > ROUNDS_OWN || mode == SWEEP_FINE)
		return loop_thresholds(w);
	own_thresholds(w, i, g, own);
	return own->count ? own : loop_thresholds(w);
}

void fay_widening_apply(struct fay_widening *w, struct fay_state *joined,
			const struct fay_state *old, unsigned round, enum fay_sweep_mode mode)
{
	struct fay_thresholds own;

	for (uint32_t i = 0; i < joined->count; i++) {
		struct fay_value *v = &joined->loc[i];
		const struct fay_scalar *before = &old->loc[i].s;
		struct growth g;

		if (!fay_value_numeric(v) || fay_scalar_equal(&v->s, before))
			continue;
		g = (struct growth){ .up = v->s.smax > before->smax,
				     .down = v->s.smin < before->smin };
		fay_state_widen_one(joined, old, i, thresholds(w, i, round, mode, g, &own));
		if (round > ROUNDS_BITS)
			forget_low_bits(&v->s);
	}
}
