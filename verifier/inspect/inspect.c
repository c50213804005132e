/* SPDX-License-Identifier: MIT */
/*
 * What is known of an image: the prover's own tables, blocks and loops, and the functions that they
 * lie in. Where the prover refuses a probe, those behind it are looked at all the same.
 */
#include <stdlib.h>
#include <string.h>

#include "inspect.h"
#include "verifier/prover/graph/cfg_parts.h"

void fay_inspect_policy(struct fay_policy *policy)
{
	fay_policy_default(policy);
	policy->allow_rdtsc = true;
}

/* ---- blocks ---- */

/* The block of `from` that holds `address`, or NULL. They are in order, without overlap. */
static const struct fay_inspected_block *before(const struct fay_inspected_block *from,
						uint32_t count, uint64_t address)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (from[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &from[low - 1] : NULL;
}

/* The blocks of the code as it is known now. A probe's jump table may have cut blocks that were
 * known: what is cut off runs as often as the whole did. False: out of memory. */
static bool adopt(struct fay_inspected *in, const struct fay_cfg *cfg)
{
	struct fay_inspected_block *blocks;

	if (in->blocks && in->block_count && in->block_count == cfg->block_count)
		return true;
	blocks = calloc(cfg->block_count ? cfg->block_count : 1, sizeof(*blocks));
	if (!blocks)
		return false;
	for (uint32_t i = 0; i < cfg->block_count; i++) {
		uint64_t start = cfg->insns[cfg->blocks[i].first].address;
		const struct fay_insn *last =
			&cfg->insns[cfg->blocks[i].first + cfg->blocks[i].count - 1];
		const struct fay_inspected_block *old = before(in->blocks, in->block_count, start);

		if (old && start < old->end)
			blocks[i] = *old;
		blocks[i].head &= old && old->start == start;
		if (!old || old->start != start)
			blocks[i].facts = NULL;
		blocks[i].start = start;
		blocks[i].end = last->address + last->length;
	}
	free(in->blocks);
	in->blocks = blocks;
	in->block_count = cfg->block_count;
	return true;
}

static uint64_t multiply(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static void count_node(struct fay_inspected *in, const struct fay_analysis *an, uint32_t node,
		       uint64_t runs, uint64_t *sum)
{
	const struct fay_node *n = &an->graph->nodes[node];
	struct fay_inspected_block *block = &in->blocks[n->block];

	block->known = true;
	if (__builtin_add_overflow(sum[n->block], runs, &sum[n->block]))
		sum[n->block] = UINT64_MAX;
	if (sum[n->block] > block->runs)
		block->runs = sum[n->block];
	if (!n->is_header)
		return;
	block->bound =
		!block->head || an->bounds[node] > block->bound ? an->bounds[node] : block->bound;
	block->head = true;
}

/* A node runs as often as its loop is entered, times the loop's rounds. Heads of outer loops have
 * lesser numbers. */
static void proved(void *context, struct fay_run *run)
{
	struct fay_inspected *in = context;
	const struct fay_graph *g = run->an.graph;
	uint64_t *times = calloc(g->node_count, sizeof(*times));
	uint64_t *sum = calloc(run->cfg.block_count, sizeof(*sum));

	if (times && sum && adopt(in, &run->cfg)) {
		for (uint32_t node = 0; node < g->node_count; node++) {
			const struct fay_node *n = &g->nodes[node];

			times[node] = n->header == FAY_NONE ? 1 : times[n->header];
			if (n->is_header)
				times[node] = multiply(times[node], run->an.bounds[node]);
			if (fay_reached(&run->an, node))
				count_node(in, &run->an, node, times[node], sum);
		}
		fay_inspect_facts(in, run);
	}
	free(times);
	free(sum);
}

uint32_t fay_inspect_successors(const struct fay_inspected *in, uint32_t block)
{
	const struct fay_cfg *cfg = &in->run->cfg;
	const struct fay_block *b = &cfg->blocks[block];
	const struct fay_insn *last = &cfg->insns[b->first + b->count - 1];
	uint32_t first;

	switch (last->op) {
	case OP_JMP: return 1;
	case OP_JCC: return 2;
	case OP_RET: return 0;
	case OP_JMP_TABLE: return fay_cfg_jumps(cfg, last->address, &first);
	default: return fay_cfg_block_at(cfg, last->address + last->length) != FAY_NONE;
	}
}

uint32_t fay_inspect_successor(const struct fay_inspected *in, uint32_t block, uint32_t k)
{
	const struct fay_cfg *cfg = &in->run->cfg;
	const struct fay_block *b = &cfg->blocks[block];
	const struct fay_insn *last = &cfg->insns[b->first + b->count - 1];
	uint64_t to = last->address + last->length;
	uint32_t first;

	if (last->op == OP_JMP || (last->op == OP_JCC && !k))
		to = last->target;
	if (last->op == OP_JMP_TABLE && k < fay_cfg_jumps(cfg, last->address, &first))
		to = cfg->jumps[first + k].to;
	return fay_cfg_block_at(cfg, to);
}

/* ---- functions ---- */

/* Where one begins: by a symbol, a probe's entry, a call. */
struct begin {
	uint64_t address;
	uint32_t rank; /* of several names the one with the greatest */
	const char *name;
};

static int compare_begins(const void *a, const void *b)
{
	const struct begin *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static void add_begin(const struct fay_image *image, struct begin *begins, uint32_t *count,
		      uint64_t address, const char *name)
{
	if (address - image->text.start < image->text.size) {
		begins[*count] = (struct begin){ address, *count, name };
		++*count;
	}
}

static const char *unnamed(const struct fay_inspected *in, uint64_t address)
{
	const struct fay_image *image = &in->run->image;
	struct fay_arena *arena = in->run->arena;
	const char *name = NULL;

	for (uint32_t i = 0; !name && i < in->verdict.probe_count; i++)
		if (image->layout_base + image->probes[i].code_offset == address)
			name = fay_arena_printf(arena, "probe %u", i);
	if (!name)
		name = fay_arena_printf(arena, ".text+0x%llx",
					(unsigned long long)fay_inspect_offset(in, address));
	return name ? name : ".text";
}

static uint32_t collect(const struct fay_inspected *in, struct begin *begins)
{
	const struct fay_image *image = &in->run->image;
	const struct fay_cfg *cfg = &in->run->cfg;
	uint32_t count = 0;

	add_begin(image, begins, &count, image->text.start, NULL);
	for (uint32_t i = 0; i < in->verdict.probe_count; i++)
		add_begin(image, begins, &count, image->layout_base + image->probes[i].code_offset,
			  NULL);
	for (uint32_t i = 0; i < cfg->insn_count; i++)
		if (cfg->insns[i].op == OP_CALL)
			add_begin(image, begins, &count, cfg->insns[i].target, NULL);
	for (uint32_t i = 0; i < image->symbol_count; i++)
		add_begin(image, begins, &count, image->symbols[i].address, image->symbols[i].name);
	qsort(begins, count, sizeof(*begins), compare_begins);
	return count;
}

static bool find_functions(struct fay_inspected *in)
{
	const struct fay_image *image = &in->run->image;
	size_t room =
		(size_t)in->verdict.probe_count + in->run->cfg.insn_count + image->symbol_count + 1;
	struct begin *begins = calloc(room, sizeof(*begins));
	uint32_t count, block = 0, n = 0;

	in->functions = calloc(room, sizeof(*in->functions));
	count = begins && in->functions ? collect(in, begins) : 0;
	for (uint32_t i = 0; i < count; i++) {
		struct fay_inspected_function *f = &in->functions[n];

		if (i + 1 < count && begins[i + 1].address == begins[i].address)
			continue;
		f->start = begins[i].address;
		f->end = i + 1 < count ? begins[i + 1].address
				       : image->text.start + image->text.size;
		f->name = begins[i].name ? begins[i].name : unnamed(in, f->start);
		f->first = block;
		while (block < in->block_count && in->blocks[block].start < f->end)
			block++;
		f->last = block;
		n++;
	}
	in->function_count = n;
	free(begins);
	return count != 0;
}

const struct fay_inspected_function *fay_inspect_function(const struct fay_inspected *in,
							  uint64_t address)
{
	uint32_t low = 0, high = in->function_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (in->functions[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < in->functions[low - 1].end ? &in->functions[low - 1] : NULL;
}

static int compare_numbers(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* A jump to where another function begins is a call in the last place. */
static bool leaves(const struct fay_inspected *in, const struct fay_inspected_function *f,
		   const struct fay_insn *insn, uint32_t *number)
{
	const struct fay_inspected_function *to;

	if (insn->op != OP_CALL && insn->op != OP_JMP && insn->op != OP_JCC)
		return false;
	to = fay_inspect_function(in, insn->target);
	if (!to || (insn->op != OP_CALL && (to == f || to->start != insn->target)))
		return false;
	*number = (uint32_t)(to - in->functions);
	return true;
}

bool fay_inspect_calls(const struct fay_inspected *in, uint32_t function,
		       struct fay_inspected_calls *calls)
{
	const struct fay_inspected_function *f = &in->functions[function];
	const struct fay_cfg *cfg = &in->run->cfg;
	uint32_t end, kept = 0;

	*calls = (struct fay_inspected_calls){ 0 };
	if (f->first == f->last)
		return true;
	end = cfg->blocks[f->last - 1].first + cfg->blocks[f->last - 1].count;
	calls->functions = calloc(end - cfg->blocks[f->first].first, sizeof(*calls->functions));
	if (!calls->functions)
		return false;
	for (uint32_t i = cfg->blocks[f->first].first; i < end; i++) {
		const struct fay_insn *insn = &cfg->insns[i];
		int helper = insn->op == OP_CALL_SLOT
				     ? fay_image_slot(&in->run->image, insn->target)
				     : -1;

		if (helper >= 0)
			calls->helpers |= 1u << helper;
		calls->by_register |= insn->op == OP_CALL_REG;
		calls->count += leaves(in, f, insn, &calls->functions[calls->count]);
	}
	qsort(calls->functions, calls->count, sizeof(*calls->functions), compare_numbers);
	for (uint32_t i = 0; i < calls->count; i++)
		if (!i || calls->functions[i] != calls->functions[kept - 1])
			calls->functions[kept++] = calls->functions[i];
	calls->count = kept;
	return true;
}

/* ---- all of it ---- */

struct look {
	struct fay_inspected *in;
	bool too_much; /* some probe was refused for its cost alone */
};

static void refused(void *context, struct fay_run *run)
{
	struct look *look = context;

	look->too_much |= run->refusal.rule == FAY_RULE_POL_INSTRUCTIONS ||
			  run->refusal.rule == FAY_RULE_POL_STACK;
	if ((run->refused == REFUSED_OBLIGATION || run->refused == REFUSED_LOOP) &&
	    adopt(look->in, &run->cfg))
		fay_inspect_facts(look->in, run);
}

/* The prover keeps the states of its first attempt for who wants a certificate. */
static bool look(struct fay_inspected *in, const void *bytes, size_t size,
		 const struct fay_policy *policy, bool facts, bool *too_much)
{
	struct fay_observer observer = { .proved = proved, .context = in };
	struct fay_bytes certificate = { 0 };
	struct look state = { .in = in };

	*in = (struct fay_inspected){ .facts = facts };
	in->run = fay_prove(bytes, size, policy, NULL, facts ? &certificate : NULL, &observer,
			    &in->verdict);
	*too_much = false;
	if (!in->run) {
		free(certificate.at);
		return false;
	}
	if (in->verdict.outcome != FAY_ACCEPTED) {
		fay_rejection_fill(in->run->arena, in->run->placed ? &in->run->image : NULL,
				   &in->run->refusal, &in->verdict.rejection);
		refused(&state, in->run);
	}
	fay_prove_rest(in->run, refused, &state);
	in->run->observer = NULL;
	in->run->certificate = NULL;
	free(certificate.at);
	*too_much = state.too_much;
	if (!adopt(in, &in->run->cfg))
		return false;
	return !fay_inspect_has_code(in) || find_functions(in);
}

/* A limit makes the prover look for a better bound than the first one that it finds, so there is
 * none only where that one is not met. */
bool fay_inspect_init(struct fay_inspected *in, const void *bytes, size_t size,
		      const struct fay_policy *policy, bool facts)
{
	struct fay_policy loose;
	bool too_much, ok = look(in, bytes, size, policy, facts, &too_much);

	if (!ok || !too_much)
		return ok;
	loose = *policy;
	loose.max_instructions = loose.max_stack = UINT64_MAX;
	fay_inspect_deinit(in);
	return look(in, bytes, size, &loose, facts, &too_much);
}

void fay_inspect_deinit(struct fay_inspected *in)
{
	if (in->run)
		fay_run_end(in->run);
	fay_verdict_deinit(&in->verdict);
	free(in->blocks);
	free(in->functions);
	*in = (struct fay_inspected){ 0 };
}
