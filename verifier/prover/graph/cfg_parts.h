/* SPDX-License-Identifier: MIT */
/* What the parts of control flow owe each other: cfg.c (instructions, blocks), booleans.c, graph.c
 * (one probe's graph), nest.c (order and loops). */
#ifndef FAY_VERIFIER_CFG_PARTS_H
#define FAY_VERIFIER_CFG_PARTS_H

#include "cfg.h"
#include "verifier/rules/rules.h"

#define CFG_INTERIOR UINT32_MAX /* in fay_cfg.at: inside an instruction */

static inline bool fay_cfg_in_text(const struct fay_cfg *cfg, uint64_t address)
{
	return address - cfg->image->text.start < cfg->image->text.size;
}

static inline bool fay_insn_ends_block(const struct fay_insn *insn)
{
	return insn->op == OP_JMP || insn->op == OP_JCC || insn->op == OP_CALL ||
	       insn->op == OP_RET || insn->op == OP_JMP_TABLE;
}

static inline struct fay_refusal fay_cfg_no_memory(struct fay_arena *arena)
{
	return fay_refuse(arena, FAY_RULE_LIM_RESOURCE, 0, "out of memory");
}

/* Whether a branch soon after insns[i], a setcc, asks its result. All instructions are decoded and
 * sorted. */
bool fay_cfg_feeds_branch(const struct fay_cfg *cfg, uint32_t i);
/* Sets `boolean` of the blocks, which are cut. False: out of memory. */
bool fay_cfg_mark_booleans(struct fay_cfg *cfg);

/* A node at which a loop is entered beside its head; FAY_NONE: there is none. */
struct fay_odd {
	uint32_t node, head;
	bool *below; /* per node: the head leads to it in the search's tree; to be freed */
};

/*
 * Renumbers the nodes in reverse postorder, lists predecessors and finds the loops. False: out of
 * memory.
 */
bool fay_graph_nest(struct fay_graph *graph, struct fay_odd *odd);
/* Gives what is entered so copies. False: too many, or out of memory. */
bool fay_graph_split(struct fay_graph *graph, struct fay_arena *arena, struct fay_odd *odd);

#endif
