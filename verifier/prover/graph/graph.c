/* SPDX-License-Identifier: MIT */
/*
 * The graph of one probe: nodes are (call context, block, variant). Calls are followed as if the
 * callee stood in place, recursion is refused, and the blocks that booleans.c marked have a node
 * for each way in or each outcome. nest.c then orders the nodes and finds the loops.
 */
#include "cfg_parts.h"

#include <stdlib.h>

struct graph_builder {
	struct fay_graph *graph;
	const struct fay_cfg *cfg;
	uint32_t node_capacity, context_capacity;
	uint32_t table_edges;
	uint32_t variants;
	bool unfold;         /* variants of nodes are made */
	uint32_t *table;     /* open addressing, 1 + node */
	uint32_t table_size; /* power of two */
	struct fay_refusal refusal;
};

static void refuse(struct graph_builder *g, enum fay_rule rule, uint64_t address, const char *what)
{
	if (g->refusal.rule == FAY_RULE_NONE)
		g->refusal = fay_refuse(g->cfg->arena, rule, address, "%s", what);
}

static uint32_t hash_node(uint32_t context, uint32_t block, uint32_t variant)
{
	uint64_t h = (((uint64_t)context << 32 | block) + variant * 0xff51afd7ed558ccdu) *
		     0x9e3779b97f4a7c15u;

	return (uint32_t)(h >> 32);
}

static bool grow_nodes(struct graph_builder *g)
{
	struct fay_graph *graph = g->graph;
	uint32_t capacity = g->node_capacity ? g->node_capacity * 2 : 64;
	void *nodes = realloc(graph->nodes, capacity * sizeof(*graph->nodes));
	uint32_t *table;

	if (!nodes)
		return false;
	graph->nodes = nodes;
	table = calloc((size_t)capacity * 4, sizeof(*table));
	if (!table)
		return false;
	free(g->table);
	g->table = table;
	g->table_size = capacity * 4;
	g->node_capacity = capacity;
	for (uint32_t i = 0; i < graph->node_count; i++) {
		uint32_t h = hash_node(graph->nodes[i].context, graph->nodes[i].block,
				       graph->nodes[i].variant) &
			     (g->table_size - 1);

		while (g->table[h])
			h = (h + 1) & (g->table_size - 1);
		g->table[h] = i + 1;
	}
	return true;
}

/* The node (context, block, variant), made if new. */
static uint32_t intern_variant(struct graph_builder *g, uint32_t context, uint32_t block,
			       uint32_t variant)
{
	struct fay_graph *graph = g->graph;
	uint32_t h;

	if (graph->node_count == g->node_capacity && !grow_nodes(g)) {
		refuse(g, FAY_RULE_LIM_RESOURCE, 0, "out of memory");
		return FAY_NONE;
	}
	for (h = hash_node(context, block, variant) & (g->table_size - 1); g->table[h];
	     h = (h + 1) & (g->table_size - 1)) {
		const struct fay_node *node = &graph->nodes[g->table[h] - 1];

		if (node->context == context && node->block == block && node->variant == variant)
			return g->table[h] - 1;
	}
	if (graph->node_count >= FAY_MAX_NODES) {
		refuse(g, FAY_RULE_LIM_RESOURCE, g->cfg->insns[g->cfg->blocks[block].first].address,
		       "more blocks than the verifier accepts, with calls followed");
		return FAY_NONE;
	}
	graph->nodes[graph->node_count] = (struct fay_node){ .context = context,
							     .block = block,
							     .variant = variant,
							     .succ = { FAY_NONE, FAY_NONE },
							     .header = FAY_NONE };
	g->table[h] = graph->node_count + 1;
	return graph->node_count++;
}

static uint32_t intern_node(struct graph_builder *g, uint32_t context, uint32_t block)
{
	return intern_variant(g, context, block, 0);
}

/* of one probe; beyond, and behind VARIANT_DEPTH in a row, ways meet as they do in the code */
#define MAX_VARIANTS (1u << 14)
#define VARIANT_DEPTH 6u

static bool may_vary(const struct graph_builder *g, uint32_t node)
{
	return g->unfold && g->variants < MAX_VARIANTS &&
	       g->graph->nodes[node].depth < VARIANT_DEPTH;
}

/* `block` as it is entered from `node` by its edge 0 or 1. */
static uint32_t vary(struct graph_builder *g, uint32_t node, uint32_t block, unsigned edge)
{
	uint8_t depth = g->graph->nodes[node].depth;
	uint32_t to = intern_variant(g, g->graph->nodes[node].context, block, 1 + 2 * node + edge);

	g->variants++;
	if (to != FAY_NONE)
		g->graph->nodes[to].depth = depth + 1;
	return to;
}

static uint32_t add_context(struct graph_builder *g, struct fay_context context, uint64_t address)
{
	struct fay_graph *graph = g->graph;

	if (context.depth > FAY_MAX_CALL_DEPTH) {
		refuse(g, FAY_RULE_LIM_RESOURCE, address, "calls nested deeper than 8");
		return FAY_NONE;
	}
	if (graph->context_count >= FAY_MAX_CONTEXTS) {
		refuse(g, FAY_RULE_LIM_RESOURCE, address,
		       "more call sites than the verifier accepts, with calls followed");
		return FAY_NONE;
	}
	if (graph->context_count == g->context_capacity) {
		uint32_t capacity = g->context_capacity ? g->context_capacity * 2 : 16;
		void *grown = realloc(graph->contexts, capacity * sizeof(*graph->contexts));

		if (!grown) {
			refuse(g, FAY_RULE_LIM_RESOURCE, address, "out of memory");
			return FAY_NONE;
		}
		graph->contexts = grown;
		g->context_capacity = capacity;
	}
	graph->contexts[graph->context_count] = context;
	return graph->context_count++;
}

/* A call from `node`: the callee's entry in a context of its own. */
static uint32_t enter_call(struct graph_builder *g, uint32_t node, const struct fay_insn *call)
{
	struct fay_graph *graph = g->graph;
	uint32_t context = graph->nodes[node].context,
		 entry = fay_cfg_block_at(g->cfg, call->target);
	uint32_t after = fay_cfg_block_at(g->cfg, call->address + call->length), callee;

	if (entry == FAY_NONE || after == FAY_NONE) {
		refuse(g, FAY_RULE_CFI_TARGET, call->address,
		       "a call to what is not an instruction");
		return FAY_NONE;
	}
	for (uint32_t c = context; c != FAY_NONE; c = graph->contexts[c].parent)
		if (graph->contexts[c].entry_block == entry) {
			refuse(g, FAY_RULE_CFI_RECURSION, call->address,
			       "calls a function that is still running");
			return FAY_NONE;
		}
	callee = add_context(g,
			     (struct fay_context){ .parent = context,
						   .depth = graph->contexts[context].depth + 1,
						   .entry_block = entry,
						   .return_block = after },
			     call->address);
	return callee == FAY_NONE ? FAY_NONE : intern_node(g, callee, entry);
}

static uint32_t jump_to(struct graph_builder *g, uint32_t node, uint64_t address, unsigned edge)
{
	uint32_t block = fay_cfg_block_at(g->cfg, address);

	if (block == FAY_NONE) {
		refuse(g, FAY_RULE_CFI_OVERLAP, address,
		       "goes to what is not the start of an instruction");
		return FAY_NONE;
	}
	if (g->cfg->blocks[block].boolean && edge < 2 && may_vary(g, node))
		return vary(g, node, block, edge);
	return intern_node(g, g->graph->nodes[node].context, block);
}

/* A setcc comes next: its block twice, if its outcome will be asked. */
static bool outcomes(struct graph_builder *g, uint32_t node, uint64_t next)
{
	uint32_t block = fay_cfg_block_at(g->cfg, next), yes, no;

	if (block == FAY_NONE || !g->cfg->blocks[block].split || !may_vary(g, node))
		return false;
	yes = vary(g, node, block, 0);
	no = vary(g, node, block, 1);
	g->graph->nodes[node].succ[0] = yes;
	g->graph->nodes[node].succ[1] = no;
	g->graph->nodes[node].branch = (uint8_t)(1 + g->cfg->insns[g->cfg->blocks[block].first].cc);
	return true;
}

/* One edge for each place where the jump may go. */
static void connect_table(struct graph_builder *g, uint32_t node, const struct fay_insn *jump)
{
	uint32_t first, count = fay_cfg_jumps(g->cfg, jump->address, &first);
	uint32_t *table = fay_arena_alloc(g->cfg->arena, (count ? count : 1) * sizeof(*table));

	if (!table || count > FAY_MAX_TABLE_EDGES - g->table_edges) {
		refuse(g, FAY_RULE_LIM_RESOURCE, jump->address,
		       table ? "more paths through jump tables than the verifier accepts, with "
			       "calls followed"
			     : "out of memory");
		return;
	}
	g->table_edges += count;
	for (uint32_t i = 0; i < count; i++)
		table[i] = jump_to(g, node, g->cfg->jumps[first + i].to, 2);
	g->graph->nodes[node].table = table;
	g->graph->nodes[node].table_count = count;
}

static void connect(struct graph_builder *g, uint32_t node)
{
	const struct fay_cfg *cfg = g->cfg;
	struct fay_graph *graph = g->graph;
	const struct fay_block *block = &cfg->blocks[graph->nodes[node].block];
	const struct fay_insn *last = &cfg->insns[block->first + block->count - 1];
	uint64_t next = last->address + last->length;
	uint32_t first = FAY_NONE, second = FAY_NONE, context = graph->nodes[node].context;

	switch (last->op) {
	case OP_JMP: first = jump_to(g, node, last->target, 0); break;
	case OP_JCC:
		first = jump_to(g, node, last->target, 0);
		second = jump_to(g, node, next, 1);
		break;
	case OP_CALL: first = enter_call(g, node, last); break;
	case OP_JMP_TABLE: connect_table(g, node, last); return;
	case OP_RET:
		if (graph->contexts[context].parent != FAY_NONE)
			first = intern_node(g, graph->contexts[context].parent,
					    graph->contexts[context].return_block);
		break;
	default:
		if (outcomes(g, node, next))
			return;
		first = jump_to(g, node, next, 0);
	}
	graph->nodes[node].succ[0] = first;
	graph->nodes[node].succ[1] = second;
}

static struct fay_refusal build_graph(struct fay_graph *graph, const struct fay_cfg *cfg,
				      uint64_t entry, bool unfold, bool split)
{
	struct graph_builder g = { .graph = graph, .cfg = cfg, .unfold = unfold };
	uint32_t block = fay_cfg_block_at(cfg, entry);
	struct fay_odd odd;
	bool ok;

	*graph = (struct fay_graph){ 0 };
	if (block == FAY_NONE)
		return fay_refuse(cfg->arena, FAY_RULE_CFI_TARGET, entry,
				  "the probe does not start at an instruction");
	if (add_context(&g,
			(struct fay_context){ .parent = FAY_NONE,
					      .entry_block = block,
					      .return_block = FAY_NONE },
			entry) != FAY_NONE)
		intern_node(&g, 0, block);
	for (uint32_t i = 0; g.refusal.rule == FAY_RULE_NONE && i < graph->node_count; i++)
		connect(&g, i);
	free(g.table);
	if (g.refusal.rule != FAY_RULE_NONE)
		return g.refusal;
	ok = fay_graph_nest(graph, &odd) && (!split || fay_graph_split(graph, cfg->arena, &odd));
	if (ok && odd.node != FAY_NONE)
		refuse(&g, FAY_RULE_TRM_IRREDUCIBLE,
		       cfg->insns[cfg->blocks[graph->nodes[odd.node].block].first].address,
		       "this loop can be entered here as well as at its head");
	free(odd.below);
	if (!ok && g.refusal.rule == FAY_RULE_NONE)
		g.refusal = fay_cfg_no_memory(cfg->arena);
	return g.refusal;
}

struct fay_refusal fay_graph_build(struct fay_graph *graph, const struct fay_cfg *cfg,
				   uint64_t entry)
{
	struct fay_refusal r = build_graph(graph, cfg, entry, true, false);

	if (r.rule == FAY_RULE_NONE)
		return r;
	/* Too large, or loops that the unfolding gave a second way in: as the code is. */
	fay_graph_deinit(graph);
	return build_graph(graph, cfg, entry, false, false);
}

struct fay_refusal fay_graph_build_split(struct fay_graph *graph, const struct fay_cfg *cfg,
					 uint64_t entry)
{
	struct fay_refusal r = fay_graph_build(graph, cfg, entry);

	if (r.rule != FAY_RULE_TRM_IRREDUCIBLE)
		return r;
	fay_graph_deinit(graph);
	return build_graph(graph, cfg, entry, false, true);
}

void fay_graph_deinit(struct fay_graph *graph)
{
	free(graph->nodes);
	free(graph->preds);
	free(graph->contexts);
	*graph = (struct fay_graph){ 0 };
}
