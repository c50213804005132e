/* SPDX-License-Identifier: MIT */
/*
 * The room of control flow: the code of an image as instructions and basic blocks (struct fay_cfg,
 * once an image), and as the graph of one probe (struct fay_graph), whose nodes are (call context,
 * block): calls are followed as if the callee stood in place, so every return has one place to go
 * to.
 */
#ifndef FAY_VERIFIER_CFG_H
#define FAY_VERIFIER_CFG_H

#include "verifier/image/image.h"
#include "verifier/isa/isa.h"

/* Limits; reaching one is LIM-RESOURCE. */
#define FAY_MAX_INSNS (1u << 21)
#define FAY_MAX_NODES (1u << 18)
#define FAY_MAX_CONTEXTS (1u << 14)
#define FAY_MAX_CALL_DEPTH 8u
#define FAY_NONE UINT32_MAX
#define FAY_MAX_TABLE 4096u            /* entries of one jump table that are looked at */
#define FAY_MAX_TARGETS (1u << 16)     /* of all indirect jumps of an image */
#define FAY_MAX_TABLE_EDGES (1u << 20) /* of one probe's graph */
/* times that new targets are found and everything is done again */
#define FAY_MAX_DISCOVERIES 64u

struct fay_block {
	uint32_t first; /* index of its first instruction */
	uint32_t count;
	/* begins with a setcc that a branch will ask: one node where its condition holds, one where
	 * it does not */
	bool split;
	bool boolean; /* only asks a byte and branches: a node for each way in */
};

/* A place where an indirect jump may go, as the analysis found; the last pass proves that there are
 * no others. */
struct fay_jump {
	uint64_t from, to; /* virtual addresses */
};
int fay_jump_compare(const void *a, const void *b); /* by from, then to */

struct fay_cfg {
	struct fay_jump *jumps; /* by from, then to */
	uint32_t jump_count;
	const struct fay_image *image;
	struct fay_arena *arena;
	uint32_t insn_count, block_count;
	struct fay_insn *insns;   /* reachable, as far as is known of indirect jumps; by address */
	struct fay_block *blocks; /* by address */
	uint32_t *block_of;       /* of each instruction */
	/* per byte of .text: 0 nothing, CFG_INTERIOR, else 1 + instruction index */
	uint32_t *at;
};

/* Decodes all that the probes' entries reach. *cfg is to be released in any case. deadline:
 * monotonic ns, 0 none. */
struct fay_refusal fay_cfg_build(struct fay_cfg *cfg, struct fay_arena *arena,
				 const struct fay_image *image, uint64_t deadline);
void fay_cfg_deinit(struct fay_cfg *cfg);
/* Learns of more jumps and decodes all again. */
struct fay_refusal fay_cfg_extend(struct fay_cfg *cfg, const struct fay_jump *jumps, uint32_t count,
				  uint64_t deadline);
/* The jumps from `from` are jumps[*first..*first + count). */
uint32_t fay_cfg_jumps(const struct fay_cfg *cfg, uint64_t from, uint32_t *first);
/* The block that begins at `address`, or FAY_NONE. */
uint32_t fay_cfg_block_at(const struct fay_cfg *cfg, uint64_t address);

struct fay_context {
	uint32_t parent; /* FAY_NONE for the probe itself */
	uint32_t depth;
	uint32_t entry_block;
	uint32_t return_block; /* in the parent's context */
};

struct fay_node {
	uint32_t context, block;
	uint32_t variant; /* 0; or by which edge it is entered, this way only */
	uint8_t depth;    /* variants since the last node without */
	/* 1 + condition: succ[0] if it holds, else succ[1], the same block in two variants; 0: see
	 * the last instruction */
	uint8_t branch;
	uint32_t succ[2]; /* JCC: taken, not taken; FAY_NONE */
	uint32_t *table;  /* JMP_TABLE: its successors instead, in the arena */
	uint32_t table_count;
	uint32_t first_pred, pred_count; /* in graph->preds */
	/* innermost loop's header that holds this node; for a header: the enclosing loop's */
	uint32_t header;
	uint32_t last; /* for a header: the greatest node of its loop; else itself */
	bool is_header;
};

struct fay_graph {
	uint32_t node_count, context_count, loop_count;
	/* in reverse postorder; 0 is the entry; a back edge goes to a number not greater */
	struct fay_node *nodes;
	uint32_t *preds;
	struct fay_context *contexts;
};

static inline uint32_t fay_node_fanout(const struct fay_node *n)
{
	return n->table ? n->table_count : 2;
}
/* Successor k < fanout, or FAY_NONE. */
static inline uint32_t fay_node_succ(const struct fay_node *n, uint32_t k)
{
	return n->table ? n->table[k] : n->succ[k];
}

struct fay_refusal fay_graph_build(struct fay_graph *graph, const struct fay_cfg *cfg,
				   uint64_t entry);
/* The same for a search: of loops with two entries, what is entered beside the head is copied. */
struct fay_refusal fay_graph_build_split(struct fay_graph *graph, const struct fay_cfg *cfg,
					 uint64_t entry);
void fay_graph_deinit(struct fay_graph *graph);
/* The header of the innermost loop that `node` is in (itself if it is one), or FAY_NONE. */
static inline uint32_t fay_graph_loop(const struct fay_graph *graph, uint32_t node)
{
	return graph->nodes[node].is_header ? node : graph->nodes[node].header;
}
/* Whether `node` is in the loop of `header`. */
static inline bool fay_graph_in_loop(const struct fay_graph *graph, uint32_t node, uint32_t header)
{
	while (node != FAY_NONE && node != header)
		node = graph->nodes[node].header;
	return node == header;
}

/* ---- order.c: the nodes of a graph in an order in which each loop is in one piece ---- */

struct fay_order {
	uint32_t *at; /* the nodes, in order */
	uint32_t *of; /* per node: where it is */
	/* per node: for a head, where its loop ends (exclusive); else the place after its own */
	uint32_t *end;
};

/* False: out of memory. To be released in any case. */
bool fay_order_init(struct fay_order *o, const struct fay_graph *g);
void fay_order_deinit(struct fay_order *o);

#endif
