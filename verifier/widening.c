/* SPDX-License-Identifier: MIT */
/*
 * What the sweep (sweep.c) guesses of a loop's head: values that the loop compares grow to numbers of the loop's own, twice; all others, and what still
 * grows then, as far as they can at once, because each round costs as much as the last one. Nothing here is trusted.
 */
#include "widening.h"

#include <string.h>

#define ROUNDS_FINE 2u
#define NODES_MAX 4096u /* of a loop, that are looked at */
#define COMPARED_MEMORY (1u << 16)

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

static uint32_t operand(const struct fay_operand *o)
{
	return o->kind == OPERAND_REG ? 1u << (o->reg & 15) : o->kind == OPERAND_MEM ? COMPARED_MEMORY : 0;
}

/* What the loop's own numbers may be bounds of. */
static uint32_t compared(const struct fay_analysis *an, const struct fay_order *order, uint32_t head)
{
	uint32_t found = 0;

	if (order->end[head] - order->of[head] > NODES_MAX)
		return UINT32_MAX;
	for (uint32_t at = order->of[head]; at < order->end[head]; at++) {
		const struct fay_block *block = &an->cfg->blocks[an->graph->nodes[order->at[at]].block];

		for (uint32_t i = block->first; i < block->first + block->count; i++)
			if (an->cfg->insns[i].op == OP_CMP || an->cfg->insns[i].op == OP_TEST)
				found |= operand(&an->cfg->insns[i].dst) | operand(&an->cfg->insns[i].src);
	}
	return found;
}

void fay_widening_loop(struct fay_widening *w, const struct fay_analysis *an, const struct fay_order *order, uint32_t head,
		       const struct fay_state *entered)
{
	w->head = head;
	w->loop.count = w->common.count;
	memcpy(w->loop.values, w->common.values, w->common.count * sizeof(w->common.values[0]));
	fay_thresholds_add_loop(&w->loop, an, head, entered);
	w->compared = compared(an, order, head);
}

void fay_widening_apply(const struct fay_widening *w, struct fay_state *joined, const struct fay_state *old, unsigned round)
{
	for (uint32_t i = 0; i < joined->count; i++) {
		bool asked = w->compared & (i < 16 ? 1u << i : COMPARED_MEMORY);

		fay_state_widen_one(joined, old, i, asked && round <= ROUNDS_FINE ? &w->loop : &coarse);
	}
}
