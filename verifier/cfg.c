/* SPDX-License-Identifier: MIT */
/*
 * Control flow: which bytes are instructions, and how they follow one another.
 *
 * Decoding starts at the probes' entries and follows direct jumps, both sides of every condition, calls, what follows a call, and the places that
 * the analysis found for indirect jumps (transfer_jump.c).
 * Every byte of .text is at most one of: start of an instruction, inside an instruction. A target or a fall-through that meets an
 * inside, or whose bytes run over a start, is CFI-OVERLAP. So the instructions that are analysed are all that can ever run,
 * provided that indirect transfers are proved, which the last pass of the analysis sees to.
 *
 * Loops are found by Havlak's version of Tarjan's algorithm ("Nesting of Reducible and Irreducible Loops", TOPLAS 1997), which is
 * nearly linear; an irreducible loop is refused.
 */
#include "cfg.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "report.h"

#define CFG_INTERIOR UINT32_MAX

static const struct fay_refusal fine;

uint64_t fay_monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static struct fay_refusal no_memory(struct fay_arena *arena)
{
	return fay_refuse(arena, FAY_RULE_LIM_RESOURCE, 0, "out of memory");
}

struct builder {
	struct fay_cfg *cfg;
	struct fay_agree *agree;
	uint8_t *leader;    /* per byte of .text */
	uint32_t *work;     /* offsets still to decode from; one entry a leader at most */
	uint32_t work_count;
	uint32_t capacity;  /* of cfg->insns */
	uint64_t deadline;
};

static bool in_text(const struct fay_cfg *cfg, uint64_t address)
{
	return address - cfg->image->text.start < cfg->image->text.size;
}

static void add_leader(struct builder *b, uint64_t address)
{
	uint64_t offset = address - b->cfg->image->text.start;

	if (!b->leader[offset]) {
		b->leader[offset] = 1;
		b->work[b->work_count++] = (uint32_t)offset;
	}
}

static struct fay_refusal add_target(struct builder *b, const struct fay_insn *insn)
{
	if (!in_text(b->cfg, insn->target))
		return fay_refuse(b->cfg->arena, FAY_RULE_CFI_TARGET, insn->address, "goes to 0x%llx, which is not in the code",
				  (unsigned long long)insn->target);
	add_leader(b, insn->target);
	return fine;
}

/* Marks the instruction's bytes; refuses bytes that already are something else. */
static struct fay_refusal claim_bytes(struct builder *b, const struct fay_insn *insn, uint32_t index)
{
	uint32_t *at = b->cfg->at + (insn->address - b->cfg->image->text.start);

	for (unsigned i = 0; i < insn->length; i++)
		if (at[i])
			return fay_refuse(b->cfg->arena, FAY_RULE_CFI_OVERLAP, insn->address,
					  "this instruction overlaps another reachable one at 0x%llx",
					  (unsigned long long)(insn->address + i));
	at[0] = index + 1;
	for (unsigned i = 1; i < insn->length; i++)
		at[i] = CFG_INTERIOR;
	return fine;
}

static struct fay_refusal decode_one(struct builder *b, uint64_t address, struct fay_insn *insn)
{
	struct fay_cfg *cfg = b->cfg;
	const struct fay_image *image = cfg->image;
	const uint8_t *bytes = image->layout.bytes + (address - image->layout_base);
	size_t available = image->text.start + image->text.size - address;
	struct fay_refusal r = fay_decode(cfg->arena, bytes, available, address, insn);

	if (r.rule == FAY_RULE_NONE)
		r = fay_agree_check(b->agree, cfg->arena, bytes, available, insn);
	if (r.rule == FAY_RULE_NONE)
		r = claim_bytes(b, insn, cfg->insn_count);
	return r;
}

static bool grow_insns(struct builder *b)
{
	if (b->cfg->insn_count == b->capacity) {
		uint32_t capacity = b->capacity ? b->capacity * 2 : 256;
		void *grown = realloc(b->cfg->insns, capacity * sizeof(*b->cfg->insns));

		if (!grown)
			return false;
		b->cfg->insns = grown;
		b->capacity = capacity;
	}
	return true;
}

/* What follows `insn`: sets *falls if the next instruction may run after it. */
static struct fay_refusal follow(struct builder *b, const struct fay_insn *insn, bool *falls)
{
	struct fay_refusal r = fine;
	uint64_t next = insn->address + insn->length;

	*falls = true;
	switch (insn->op) {
	case OP_JMP:
		*falls = false;
		return add_target(b, insn);
	case OP_JCC:
	case OP_CALL:
		r = add_target(b, insn);
		if (r.rule == FAY_RULE_NONE && in_text(b->cfg, next))
			add_leader(b, next);
		return r;
	case OP_RET:
		*falls = false;
		return fine;
	case OP_JMP_TABLE: {
		uint32_t first, count = fay_cfg_jumps(b->cfg, insn->address, &first);

		for (uint32_t i = first; i < first + count; i++)
			add_leader(b, b->cfg->jumps[i].to); /* in the code: the analysis saw to it */
		*falls = false;
		return fine;
	}
	default:
		return fine;
	}
}

static struct fay_refusal decode_run(struct builder *b, uint64_t address)
{
	struct fay_cfg *cfg = b->cfg;

	for (;;) {
		struct fay_refusal r;
		struct fay_insn *insn;
		uint32_t mark;
		bool falls;

		if (!in_text(cfg, address)) {
			uint64_t last = cfg->insn_count ? cfg->insns[cfg->insn_count - 1].address : cfg->image->text.start;

			return fay_refuse(cfg->arena, FAY_RULE_CFI_END, last, "execution runs off the end of the code after this instruction");
		}
		mark = cfg->at[address - cfg->image->text.start];
		if (mark == CFG_INTERIOR)
			return fay_refuse(cfg->arena, FAY_RULE_CFI_OVERLAP, address, "reached as an instruction, but inside another one");
		if (mark)
			return fine;
		if (cfg->insn_count >= FAY_MAX_INSNS)
			return fay_refuse(cfg->arena, FAY_RULE_LIM_RESOURCE, address, "more than %u instructions", FAY_MAX_INSNS);
		if (b->deadline && !(cfg->insn_count & 1023) && fay_monotonic_ns() > b->deadline)
			return fay_refuse(cfg->arena, FAY_RULE_LIM_TIME, address, "time ran out while decoding");
		if (!grow_insns(b))
			return no_memory(cfg->arena);
		insn = &cfg->insns[cfg->insn_count];
		r = decode_one(b, address, insn);
		if (r.rule == FAY_RULE_NONE) {
			cfg->insn_count++;
			r = follow(b, insn, &falls);
		}
		if (r.rule != FAY_RULE_NONE)
			return r;
		if (!falls)
			return fine;
		address += insn->length;
	}
}

static bool ends_block(const struct fay_insn *insn)
{
	return insn->op == OP_JMP || insn->op == OP_JCC || insn->op == OP_CALL || insn->op == OP_RET || insn->op == OP_JMP_TABLE;
}

/* ---- booleans ---- */

/*
 * Compilers keep conditions as bytes: `setb %al; mov %al, -5(%rbp)` on one way, `mov $0` on another, and where they meet `testb $1, -5(%rbp); jne`. What the
 * branch there tells is what the compare told long before. So the graph has a node of its own for each way into such a meeting, and the piece of
 * code from the setcc on has two, one for each outcome. That unfolds the graph and changes nothing of what runs; which blocks are chosen is a matter of precision.
 */
#define LOOK_AHEAD 14u
#define BOOLEAN_MOST 6u

static bool on_stack(const struct fay_operand *mem) { return mem->kind == OPERAND_MEM && (mem->base == FAY_RBP || mem->base == FAY_RSP) && mem->index == FAY_NO_REG; }
static bool same_place(const struct fay_operand *a, const struct fay_operand *b) { return a->kind == OPERAND_MEM && on_stack(b) && a->base == b->base && a->disp == b->disp; }

/* Where the result of a setcc is: registers (a bit each), a place on the stack. */
struct holders {
	uint32_t regs;
	struct fay_operand slot;
};

static bool holds(const struct holders *h, const struct fay_operand *o)
{
	return o->kind == OPERAND_REG ? h->regs >> o->reg & 1 : same_place(&h->slot, o);
}

static void follow_holders(struct holders *h, const struct fay_insn *insn)
{
	bool moves = (insn->op == OP_MOV || insn->op == OP_MOVZX) && holds(h, &insn->src);

	if (insn->dst.kind == OPERAND_REG && fay_op_table[insn->op].dst_written)
		h->regs = (h->regs & ~(1u << insn->dst.reg)) | (uint32_t)moves << insn->dst.reg;
	else if (moves && on_stack(&insn->dst))
		h->slot = insn->dst;
}

/* Whether a branch soon after insns[i], a setcc, asks its result. */
static bool feeds_branch(const struct fay_cfg *cfg, uint32_t i)
{
	const struct fay_insn *setcc = &cfg->insns[i];
	struct holders h = { .regs = setcc->dst.kind == OPERAND_REG ? 1u << setcc->dst.reg : 0, .slot = setcc->dst };
	bool asked = false;
	uint32_t at = i + 1;

	for (unsigned steps = 0; steps < LOOK_AHEAD && at < cfg->insn_count; steps++) {
		const struct fay_insn *insn = &cfg->insns[at];

		if (insn->op == OP_JCC)
			return asked;
		if (insn->op == OP_JMP && in_text(cfg, insn->target)) {
			at = cfg->at[insn->target - cfg->image->text.start] - 1;
			continue;
		}
		if (ends_block(insn))
			return false;
		asked |= insn->width == 8 && (insn->op == OP_TEST || insn->op == OP_CMP || insn->op == OP_AND || insn->op == OP_OR) &&
			 (holds(&h, &insn->dst) || holds(&h, &insn->src));
		follow_holders(&h, insn);
		at++;
	}
	return false;
}

/* Moves from the stack at most, a byte is asked, a branch. */
static bool asks_byte(const struct fay_cfg *cfg, const struct fay_block *block)
{
	const struct fay_insn *insn = &cfg->insns[block->first], *ask = insn + block->count - 2;

	if (block->count < 2 || block->count > BOOLEAN_MOST || ask[1].op != OP_JCC || ask->width != 8 || (ask->op != OP_TEST && ask->op != OP_CMP))
		return false;
	for (; insn <= ask; insn++) {
		if (insn < ask && insn->op != OP_MOV && insn->op != OP_MOVZX && insn->op != OP_AND)
			return false;
		if ((insn->dst.kind == OPERAND_MEM && !on_stack(&insn->dst)) || (insn->src.kind == OPERAND_MEM && !on_stack(&insn->src)))
			return false;
	}
	return true;
}

static void mark_booleans(struct fay_cfg *cfg, const uint8_t *ways)
{
	for (uint32_t i = 0; i < cfg->block_count; i++)
		cfg->blocks[i].boolean = ways[i] > 1 && asks_byte(cfg, &cfg->blocks[i]);
}

/* How many direct ways lead into each block, two at most. */
static bool count_ways(struct fay_cfg *cfg)
{
	uint8_t *ways = calloc(cfg->block_count + 1, 1);

	if (!ways)
		return false;
	for (uint32_t i = 0; i < cfg->insn_count; i++) {
		const struct fay_insn *insn = &cfg->insns[i];
		uint32_t to = FAY_NONE, next = i + 1 < cfg->insn_count ? cfg->block_of[i + 1] : FAY_NONE;

		if (insn->op == OP_JMP || insn->op == OP_JCC)
			to = fay_cfg_block_at(cfg, insn->target);
		if (to != FAY_NONE && ways[to] < 2)
			ways[to]++;
		if (next != FAY_NONE && next != cfg->block_of[i] && insn->op != OP_JMP && insn->op != OP_RET && insn->op != OP_JMP_TABLE && ways[next] < 2)
			ways[next]++;
	}
	mark_booleans(cfg, ways);
	free(ways);
	return true;
}

/* Sorts by address (the map gives the order). */
static bool sort_insns(struct builder *b)
{
	struct fay_cfg *cfg = b->cfg;
	struct fay_insn *sorted = calloc(cfg->insn_count ? cfg->insn_count : 1, sizeof(*sorted));
	uint32_t n = 0;

	if (!sorted)
		return false;
	for (uint64_t offset = 0; offset < cfg->image->text.size; offset++) {
		uint32_t mark = cfg->at[offset];

		if (!mark || mark == CFG_INTERIOR)
			continue;
		sorted[n++] = cfg->insns[mark - 1];
		cfg->at[offset] = n;
	}
	free(cfg->insns);
	cfg->insns = sorted;
	return true;
}

/* Cuts blocks. */
static bool make_blocks(struct builder *b)
{
	struct fay_cfg *cfg = b->cfg;

	cfg->blocks = calloc(cfg->insn_count ? cfg->insn_count : 1, sizeof(*cfg->blocks));
	cfg->block_of = calloc(cfg->insn_count ? cfg->insn_count : 1, sizeof(*cfg->block_of));
	if (!cfg->blocks || !cfg->block_of || !sort_insns(b))
		return false;
	for (uint32_t i = 0; i < cfg->insn_count; i++) {
		const struct fay_insn *insn = &cfg->insns[i], *before = i ? insn - 1 : NULL;
		bool cut = !i || b->leader[insn->address - cfg->image->text.start] || ends_block(before) || before->address + before->length != insn->address;
		bool split = !cut && insn->op == OP_SETCC && feeds_branch(cfg, i);

		if (cut || split)
			cfg->blocks[cfg->block_count++] = (struct fay_block){ .first = i, .split = split };
		cfg->blocks[cfg->block_count - 1].count++;
		cfg->block_of[i] = cfg->block_count - 1;
	}
	return count_ways(cfg);
}

uint32_t fay_cfg_jumps(const struct fay_cfg *cfg, uint64_t from, uint32_t *first)
{
	uint32_t low = 0, high = cfg->jump_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (cfg->jumps[middle].from < from)
			low = middle + 1;
		else
			high = middle;
	}
	*first = low;
	while (high < cfg->jump_count && cfg->jumps[high].from == from)
		high++;
	return high - low;
}

static struct fay_refusal build(struct fay_cfg *cfg, uint64_t deadline)
{
	struct fay_arena *arena = cfg->arena;
	const struct fay_image *image = cfg->image;
	struct fay_refusal r = fine;
	uint64_t size = image->text.size;
	struct builder b = { .cfg = cfg, .deadline = deadline };

	cfg->at = calloc(size + 16, sizeof(*cfg->at));
	b.leader = calloc(size + 1, 1);
	b.work = calloc(size + 1, sizeof(*b.work));
	b.agree = fay_agree_create();
	if (!cfg->at || !b.leader || !b.work || !b.agree)
		r = no_memory(arena);
	for (uint32_t i = 0; r.rule == FAY_RULE_NONE && i < image->probe_count; i++) {
		uint64_t entry = image->layout_base + image->probes[i].code_offset;

		if (in_text(cfg, entry))
			add_leader(&b, entry);
		else
			r = fay_refuse(arena, FAY_RULE_CFI_TARGET, entry, "probe %u starts outside the code", i);
	}
	while (r.rule == FAY_RULE_NONE && b.work_count)
		r = decode_run(&b, image->text.start + b.work[--b.work_count]);
	if (r.rule == FAY_RULE_NONE && !make_blocks(&b))
		r = no_memory(arena);
	if (b.agree)
		fay_agree_destroy(b.agree);
	free(b.leader);
	free(b.work);
	return r;
}

struct fay_refusal fay_cfg_build(struct fay_cfg *cfg, struct fay_arena *arena, const struct fay_image *image, uint64_t deadline)
{
	*cfg = (struct fay_cfg){ .image = image, .arena = arena };
	return build(cfg, deadline);
}

int fay_jump_compare(const void *a, const void *b)
{
	const struct fay_jump *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

struct fay_refusal fay_cfg_extend(struct fay_cfg *cfg, const struct fay_jump *jumps, uint32_t count, uint64_t deadline)
{
	struct fay_cfg old = *cfg;
	uint32_t total = old.jump_count, kept = 0;
	struct fay_jump *all;

	if (count > FAY_MAX_TARGETS || total > FAY_MAX_TARGETS - count)
		return fay_refuse(cfg->arena, FAY_RULE_LIM_RESOURCE, jumps[0].from, "indirect jumps with more than %u targets", FAY_MAX_TARGETS);
	all = malloc((total + count) * sizeof(*all));
	if (!all)
		return no_memory(cfg->arena);
	if (total)
		memcpy(all, old.jumps, total * sizeof(*all));
	memcpy(all + total, jumps, count * sizeof(*all));
	qsort(all, total + count, sizeof(*all), fay_jump_compare);
	for (uint32_t i = 0; i < total + count; i++)
		if (!kept || fay_jump_compare(&all[kept - 1], &all[i]))
			all[kept++] = all[i];
	*cfg = (struct fay_cfg){ .image = old.image, .arena = old.arena, .jumps = all, .jump_count = kept };
	fay_cfg_deinit(&old);
	return build(cfg, deadline);
}

void fay_cfg_deinit(struct fay_cfg *cfg)
{
	free(cfg->jumps);
	free(cfg->insns);
	free(cfg->blocks);
	free(cfg->block_of);
	free(cfg->at);
	*cfg = (struct fay_cfg){ 0 };
}

uint32_t fay_cfg_block_at(const struct fay_cfg *cfg, uint64_t address)
{
	uint32_t mark, block;

	if (!in_text(cfg, address))
		return FAY_NONE;
	mark = cfg->at[address - cfg->image->text.start];
	if (!mark || mark == CFG_INTERIOR)
		return FAY_NONE;
	block = cfg->block_of[mark - 1];
	return cfg->blocks[block].first == mark - 1 ? block : FAY_NONE;
}

/* ---- the graph of one probe ---- */

struct graph_builder {
	struct fay_graph *graph;
	const struct fay_cfg *cfg;
	uint32_t node_capacity, context_capacity;
	uint32_t table_edges;
	uint32_t variants;
	bool unfold;          /* variants of nodes are made */
	uint32_t *table;      /* open addressing, 1 + node */
	uint32_t table_size;  /* power of two */
	struct fay_refusal refusal;
};

static void refuse(struct graph_builder *g, enum fay_rule rule, uint64_t address, const char *what)
{
	if (g->refusal.rule == FAY_RULE_NONE)
		g->refusal = fay_refuse(g->cfg->arena, rule, address, "%s", what);
}

static uint32_t hash_node(uint32_t context, uint32_t block, uint32_t variant)
{
	uint64_t h = (((uint64_t)context << 32 | block) + variant * 0xff51afd7ed558ccdu) * 0x9e3779b97f4a7c15u;

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
		uint32_t h = hash_node(graph->nodes[i].context, graph->nodes[i].block, graph->nodes[i].variant) & (g->table_size - 1);

		while (g->table[h])
			h = (h + 1) & (g->table_size - 1);
		g->table[h] = i + 1;
	}
	return true;
}

/* The node (context, block, variant), made if new. */
static uint32_t intern_variant(struct graph_builder *g, uint32_t context, uint32_t block, uint32_t variant)
{
	struct fay_graph *graph = g->graph;
	uint32_t h;

	if (graph->node_count == g->node_capacity && !grow_nodes(g)) {
		refuse(g, FAY_RULE_LIM_RESOURCE, 0, "out of memory");
		return FAY_NONE;
	}
	for (h = hash_node(context, block, variant) & (g->table_size - 1); g->table[h]; h = (h + 1) & (g->table_size - 1)) {
		const struct fay_node *node = &graph->nodes[g->table[h] - 1];

		if (node->context == context && node->block == block && node->variant == variant)
			return g->table[h] - 1;
	}
	if (graph->node_count >= FAY_MAX_NODES) {
		refuse(g, FAY_RULE_LIM_RESOURCE, g->cfg->insns[g->cfg->blocks[block].first].address,
		       "more blocks than the verifier takes, calls followed");
		return FAY_NONE;
	}
	graph->nodes[graph->node_count] = (struct fay_node){
		.context = context, .block = block, .variant = variant, .succ = { FAY_NONE, FAY_NONE }, .header = FAY_NONE };
	g->table[h] = graph->node_count + 1;
	return graph->node_count++;
}

static uint32_t intern_node(struct graph_builder *g, uint32_t context, uint32_t block) { return intern_variant(g, context, block, 0); }

#define MAX_VARIANTS (1u << 14) /* of one probe; beyond, and behind VARIANT_DEPTH in a row, ways meet as they do in the code */
#define VARIANT_DEPTH 6u

static bool may_vary(const struct graph_builder *g, uint32_t node)
{
	return g->unfold && g->variants < MAX_VARIANTS && g->graph->nodes[node].depth < VARIANT_DEPTH;
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
		refuse(g, FAY_RULE_LIM_RESOURCE, address, "more call sites than the verifier takes, calls followed");
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
	uint32_t context = graph->nodes[node].context, entry = fay_cfg_block_at(g->cfg, call->target);
	uint32_t after = fay_cfg_block_at(g->cfg, call->address + call->length), callee;

	if (entry == FAY_NONE || after == FAY_NONE) {
		refuse(g, FAY_RULE_CFI_TARGET, call->address, "a call to what is not an instruction");
		return FAY_NONE;
	}
	for (uint32_t c = context; c != FAY_NONE; c = graph->contexts[c].parent)
		if (graph->contexts[c].entry_block == entry) {
			refuse(g, FAY_RULE_CFI_RECURSION, call->address, "calls a function that is still running");
			return FAY_NONE;
		}
	callee = add_context(g, (struct fay_context){ .parent = context, .depth = graph->contexts[context].depth + 1,
						      .entry_block = entry, .return_block = after }, call->address);
	return callee == FAY_NONE ? FAY_NONE : intern_node(g, callee, entry);
}

static uint32_t jump_to(struct graph_builder *g, uint32_t node, uint64_t address, unsigned edge)
{
	uint32_t block = fay_cfg_block_at(g->cfg, address);

	if (block == FAY_NONE) {
		refuse(g, FAY_RULE_CFI_OVERLAP, address, "goes to what is not the start of an instruction");
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
		refuse(g, FAY_RULE_LIM_RESOURCE, jump->address, table ? "more ways through jump tables than the verifier takes, calls followed" : "out of memory");
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
	case OP_JMP:
		first = jump_to(g, node, last->target, 0);
		break;
	case OP_JCC:
		first = jump_to(g, node, last->target, 0);
		second = jump_to(g, node, next, 1);
		break;
	case OP_CALL:
		first = enter_call(g, node, last);
		break;
	case OP_JMP_TABLE:
		connect_table(g, node, last);
		return;
	case OP_RET:
		if (graph->contexts[context].parent != FAY_NONE)
			first = intern_node(g, graph->contexts[context].parent, graph->contexts[context].return_block);
		break;
	default:
		if (outcomes(g, node, next))
			return;
		first = jump_to(g, node, next, 0);
	}
	graph->nodes[node].succ[0] = first;
	graph->nodes[node].succ[1] = second;
}

/* ---- order and loops ---- */

struct order {
	uint32_t *pre;      /* node -> preorder number */
	uint32_t *last;     /* preorder number -> greatest preorder number below it */
	uint32_t *node_of;  /* preorder number -> node */
	uint32_t *rank;     /* node -> reverse postorder number */
};

/* Depth-first search without recursion. */
static bool search(const struct fay_graph *graph, struct order *o)
{
	uint32_t n = graph->node_count, pre = 0, post = n, depth = 0;
	uint32_t *stack = calloc(n, sizeof(*stack));
	uint32_t *next = calloc(n, sizeof(*next));

	if (!stack || !next) {
		free(stack);
		free(next);
		return false;
	}
	memset(o->pre, 0xff, n * sizeof(*o->pre));
	stack[depth++] = 0;
	o->node_of[pre] = 0;
	o->pre[0] = pre++;
	while (depth) {
		uint32_t node = stack[depth - 1];

		if (next[node] < fay_node_fanout(&graph->nodes[node])) {
			/* The fall-through first, so that it ends up after the taken side in reverse postorder. */
			uint32_t to = fay_node_succ(&graph->nodes[node], next[node]++);

			if (to != FAY_NONE && o->pre[to] == FAY_NONE) {
				o->node_of[pre] = to;
				o->pre[to] = pre++;
				stack[depth++] = to;
			}
			continue;
		}
		o->last[o->pre[node]] = pre - 1;
		o->rank[node] = --post;
		depth--;
	}
	free(stack);
	free(next);
	return post == 0; /* every node is reachable, as it was made on being reached */
}

/* Renumbers the nodes in reverse postorder; o is in the new numbers afterwards. */
static bool renumber(struct fay_graph *graph, struct order *o)
{
	uint32_t n = graph->node_count;
	struct fay_node *nodes = calloc(n, sizeof(*nodes));
	uint32_t *pre = calloc(n, sizeof(*pre));

	if (!nodes || !pre) {
		free(nodes);
		free(pre);
		return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		nodes[o->rank[i]] = graph->nodes[i];
		for (int k = 0; k < 2; k++)
			if (graph->nodes[i].succ[k] != FAY_NONE)
				nodes[o->rank[i]].succ[k] = o->rank[graph->nodes[i].succ[k]];
		for (uint32_t k = 0; k < nodes[o->rank[i]].table_count; k++)
			nodes[o->rank[i]].table[k] = o->rank[nodes[o->rank[i]].table[k]];
		pre[o->rank[i]] = o->pre[i];
	}
	for (uint32_t i = 0; i < n; i++)
		o->node_of[pre[i]] = i;
	free(graph->nodes);
	free(o->pre);
	graph->nodes = nodes;
	o->pre = pre;
	return true;
}

static bool list_preds(struct fay_graph *graph)
{
	uint32_t n = graph->node_count, total = 0;
	size_t edges = 1;

	for (uint32_t i = 0; i < n; i++)
		edges += fay_node_fanout(&graph->nodes[i]);
	graph->preds = calloc(edges, sizeof(*graph->preds));
	if (!graph->preds)
		return false;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < fay_node_fanout(&graph->nodes[i]); k++)
			if (fay_node_succ(&graph->nodes[i], k) != FAY_NONE)
				graph->nodes[fay_node_succ(&graph->nodes[i], k)].pred_count++;
	for (uint32_t i = 0; i < n; i++) {
		graph->nodes[i].first_pred = total;
		total += graph->nodes[i].pred_count;
		graph->nodes[i].pred_count = 0;
	}
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < fay_node_fanout(&graph->nodes[i]); k++)
			if (fay_node_succ(&graph->nodes[i], k) != FAY_NONE) {
				struct fay_node *to = &graph->nodes[fay_node_succ(&graph->nodes[i], k)];

				graph->preds[to->first_pred + to->pred_count++] = i;
			}
	return true;
}

static uint32_t find(uint32_t *parent, uint32_t x)
{
	while (parent[x] != x) {
		parent[x] = parent[parent[x]];
		x = parent[x];
	}
	return x;
}

static bool is_ancestor(const struct order *o, uint32_t above, uint32_t below)
{
	return o->pre[above] <= o->pre[below] && o->pre[below] <= o->last[o->pre[above]];
}

/* All nodes of the loop of `header` get it as their header. FAY_NONE, or a node through which the loop is entered beside its header. */
static uint32_t collect_loop(struct fay_graph *graph, const struct order *o, uint32_t *parent, uint32_t *work, uint32_t *mark, uint32_t header)
{
	uint32_t count = 0, done = 0;
	struct fay_node *h = &graph->nodes[header];

	for (uint32_t i = 0; i < h->pred_count; i++) {
		uint32_t from = graph->preds[h->first_pred + i], x;

		if (!is_ancestor(o, header, from))
			continue;
		h->is_header = true;
		x = find(parent, from);
		if (x != header && mark[x] != header) {
			mark[x] = header;
			work[count++] = x;
		}
	}
	while (done < count) {
		const struct fay_node *node = &graph->nodes[work[done++]];

		for (uint32_t i = 0; i < node->pred_count; i++) {
			uint32_t from = graph->preds[node->first_pred + i], x;

			if (is_ancestor(o, (uint32_t)(node - graph->nodes), from))
				continue; /* a back edge to an inner header */
			x = find(parent, from);
			if (!is_ancestor(o, header, x))
				return (uint32_t)(node - graph->nodes);
			if (x != header && mark[x] != header) {
				mark[x] = header;
				work[count++] = x;
			}
		}
	}
	for (uint32_t i = 0; i < count; i++) {
		graph->nodes[work[i]].header = header;
		parent[work[i]] = header;
	}
	graph->loop_count += h->is_header;
	return FAY_NONE;
}

/* Members of a loop have greater numbers than its head, so every loop within is done before its own head's turn. */
static void find_last(struct fay_graph *graph)
{
	for (uint32_t i = 0; i < graph->node_count; i++)
		graph->nodes[i].last = i;
	for (uint32_t i = graph->node_count; i-- > 0;) {
		uint32_t header = graph->nodes[i].header;

		if (header != FAY_NONE && graph->nodes[header].last < graph->nodes[i].last)
			graph->nodes[header].last = graph->nodes[i].last;
	}
}

static bool nest_loops(struct graph_builder *g, const struct order *o)
{
	struct fay_graph *graph = g->graph;
	uint32_t n = graph->node_count;
	uint32_t *parent = calloc(n, sizeof(*parent)), *work = calloc(n, sizeof(*work)), *mark = calloc(n, sizeof(*mark));
	bool ok = parent && work && mark;

	for (uint32_t i = 0; ok && i < n; i++) {
		parent[i] = i;
		mark[i] = FAY_NONE;
	}
	for (uint32_t p = n; ok && p-- > 0;) {
		uint32_t odd = collect_loop(graph, o, parent, work, mark, o->node_of[p]);

		if (odd != FAY_NONE) {
			refuse(g, FAY_RULE_TRM_IRREDUCIBLE, g->cfg->insns[g->cfg->blocks[graph->nodes[odd].block].first].address,
			       "this loop can be entered here as well as at its head");
			break;
		}
	}
	find_last(graph);
	free(parent);
	free(work);
	free(mark);
	return ok;
}

static struct fay_refusal build_graph(struct fay_graph *graph, const struct fay_cfg *cfg, uint64_t entry, bool unfold)
{
	struct graph_builder g = { .graph = graph, .cfg = cfg, .unfold = unfold };
	struct order o = { 0 };
	uint32_t block = fay_cfg_block_at(cfg, entry);
	bool ok;

	*graph = (struct fay_graph){ 0 };
	if (block == FAY_NONE)
		return fay_refuse(cfg->arena, FAY_RULE_CFI_TARGET, entry, "the probe does not start at an instruction");
	if (add_context(&g, (struct fay_context){ .parent = FAY_NONE, .entry_block = block, .return_block = FAY_NONE }, entry) != FAY_NONE)
		intern_node(&g, 0, block);
	for (uint32_t i = 0; g.refusal.rule == FAY_RULE_NONE && i < graph->node_count; i++)
		connect(&g, i);
	free(g.table);
	if (g.refusal.rule != FAY_RULE_NONE)
		return g.refusal;
	o.pre = calloc(graph->node_count, sizeof(uint32_t));
	o.last = calloc(graph->node_count, sizeof(uint32_t));
	o.node_of = calloc(graph->node_count, sizeof(uint32_t));
	o.rank = calloc(graph->node_count, sizeof(uint32_t));
	ok = o.pre && o.last && o.node_of && o.rank && search(graph, &o) && renumber(graph, &o) && list_preds(graph) && nest_loops(&g, &o);
	free(o.pre);
	free(o.last);
	free(o.node_of);
	free(o.rank);
	if (!ok && g.refusal.rule == FAY_RULE_NONE)
		g.refusal = no_memory(cfg->arena);
	return g.refusal;
}

struct fay_refusal fay_graph_build(struct fay_graph *graph, const struct fay_cfg *cfg, uint64_t entry)
{
	struct fay_refusal r = build_graph(graph, cfg, entry, true);

	if (r.rule == FAY_RULE_NONE)
		return r;
	/* Too large, or loops that the unfolding gave a second way in: as the code is. */
	fay_graph_deinit(graph);
	return build_graph(graph, cfg, entry, false);
}

void fay_graph_deinit(struct fay_graph *graph)
{
	free(graph->nodes);
	free(graph->preds);
	free(graph->contexts);
	*graph = (struct fay_graph){ 0 };
}

bool fay_graph_in_loop(const struct fay_graph *graph, uint32_t node, uint32_t header)
{
	while (node != FAY_NONE && node != header)
		node = graph->nodes[node].header;
	return node == header;
}
