/* SPDX-License-Identifier: MIT */
/*
 * The numbers at which widening may stop: sizes of regions, ends of the common widths, and
 * constants that code compares with or adds.
 *
 * A loop gets a list of its own, from its body and what is known where it is entered: a list of all
 * constants of a large image would have its loops climb from one foreign number to the next.
 * Nothing here is trusted: a bad list costs precision or time only.
 */
#include "loops.h"

#include <string.h>

#define LOOP_NODES_MAX 4096u /* looked at for a loop's own list */
#define INSN_VALUES_MAX 480u /* leaves room for the rest */

const struct fay_thresholds fay_thresholds_coarse = {
	.count = 6, .values = { -1, 0, 1, INT16_MAX, INT32_MAX, UINT32_MAX }
};

void fay_thresholds_add_one(struct fay_thresholds *t, int64_t value)
{
	uint32_t low = 0, high = t->count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (t->values[middle] < value)
			low = middle + 1;
		else
			high = middle;
	}
	if ((low < t->count && t->values[low] == value) ||
	    t->count == sizeof(t->values) / sizeof(t->values[0]))
		return;
	memmove(&t->values[low + 1], &t->values[low], (t->count - low) * sizeof(t->values[0]));
	t->values[low] = value;
	t->count++;
}

static void around(struct fay_thresholds *t, int64_t value)
{
	fay_thresholds_add_one(t, value);
	fay_thresholds_add_one(t, value - 1);
	fay_thresholds_add_one(t, value + 1);
}

/* Of code and states. What lies around 0 is among the common numbers, where it is wanted. */
static void add_around(struct fay_thresholds *t, int64_t value)
{
	if (value != INT64_MIN && value != INT64_MAX && value != 0)
		around(t, value);
}

void fay_thresholds_add(struct fay_thresholds *t, int64_t value)
{
	add_around(t, value);
}

void fay_thresholds_common(struct fay_thresholds *t, const struct fay_image *image)
{
	static const unsigned powers[] = { 7, 8, 15, 16, 31, 32, 47, 62 };

	t->count = 0;
	around(t, 0);
	for (unsigned i = 0; i < sizeof(powers) / sizeof(powers[0]); i++)
		fay_thresholds_add_one(t, ((int64_t)1 << powers[i]) - 1);
	fay_thresholds_add_one(t, -((int64_t)1 << 31));
	add_around(t, image->header.local_size);
	add_around(t, image->header.global_size);
	add_around(t, (int64_t)image->rodata.size);
	add_around(t, sizeof(struct fay_event));
}

static void add_insn(struct fay_thresholds *t, const struct fay_insn *insn)
{
	if (insn->src.kind == OPERAND_IMM && insn->op != OP_SHL && insn->op != OP_SHR &&
	    insn->op != OP_SAR)
		add_around(t, insn->src.imm);
	if (insn->op == OP_LEA && !insn->src.rip)
		add_around(t, insn->src.disp);
}

/* lea of a fixed place on the stack, where a pointer will stop. */
static void add_place(struct fay_thresholds *t, const struct fay_insn *insn,
		      const struct fay_state *entered)
{
	const struct fay_value *base;

	if (insn->op != OP_LEA || insn->src.rip || insn->src.base == FAY_NO_REG ||
	    insn->src.index != FAY_NO_REG)
		return;
	base = &entered->loc[insn->src.base];
	if (base->kind == KIND_POINTER && fay_scalar_is_const(&base->s))
		add_around(t, (int64_t)(base->s.umin + (uint64_t)insn->src.disp));
}

void fay_thresholds_collect(struct fay_thresholds *t, const struct fay_image *image,
			    const struct fay_cfg *cfg)
{
	fay_thresholds_common(t, image);
	for (uint32_t i = 0; i < cfg->insn_count && t->count < INSN_VALUES_MAX; i++)
		add_insn(t, &cfg->insns[i]);
}

void fay_thresholds_add_loop(struct fay_thresholds *t, const struct fay_analysis *an,
			     uint32_t header, const struct fay_state *entered)
{
	const struct fay_graph *g = an->graph;
	uint32_t last = g->nodes[header].last;
	int64_t smin = INT64_MAX, smax = INT64_MAX;

	if (last - header > LOOP_NODES_MAX)
		last = header + LOOP_NODES_MAX;
	for (uint32_t i = 0; i < entered->count && t->count < INSN_VALUES_MAX; i++) {
		const struct fay_value *v = &entered->loc[i];

		if (!fay_value_numeric(v))
			continue;
		if (v->s.smin != smin)
			add_around(t, v->s.smin);
		if (v->s.smax != smax && v->s.smax != v->s.smin)
			add_around(t, v->s.smax);
		smin = v->s.smin; /* values often follow their like */
		smax = v->s.smax;
	}
	for (uint32_t node = header; node <= last && t->count < INSN_VALUES_MAX; node++) {
		const struct fay_block *block = &an->cfg->blocks[g->nodes[node].block];

		for (uint32_t i = 0; i < block->count && t->count < INSN_VALUES_MAX; i++)
			add_insn(t, &an->cfg->insns[block->first + i]);
		for (uint32_t i = 0; i < block->count && t->count < INSN_VALUES_MAX; i++)
			add_place(t, &an->cfg->insns[block->first + i], entered);
	}
}
