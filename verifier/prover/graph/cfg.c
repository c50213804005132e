/* SPDX-License-Identifier: MIT */
/*
 * Control flow: which bytes are instructions, and how they follow one another.
 *
 * Decoding starts at the probes' entries and follows direct jumps, both sides of every condition,
 * calls, what follows a call, and the places that the analysis found for indirect jumps
 * (transfer_jump.c). Every byte of .text is at most one of: start of an instruction, inside an
 * instruction. A target or a fall-through that meets an inside, or whose bytes run over a start, is
 * CFI-OVERLAP. So the instructions that are analysed are all that can ever run, provided that
 * indirect transfers are proved, which the last pass of the analysis sees to.
 *
 * Further: booleans.c says which blocks the graph is unfolded at, graph.c makes the graph of one
 * probe, nest.c finds its loops.
 */
#include "cfg_parts.h"
#include "verifier/prover/decoders/agree.h"

#include <stdlib.h>
#include <string.h>

static const struct fay_refusal fine;

struct builder {
	struct fay_cfg *cfg;
	struct fay_agree *agree;
	uint8_t *leader; /* per byte of .text */
	uint32_t *work;  /* offsets still to decode from; one entry a leader at most */
	uint32_t work_count;
	uint32_t capacity; /* of cfg->insns */
	uint64_t deadline;
};

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
	if (!fay_cfg_in_text(b->cfg, insn->target))
		return fay_refuse(b->cfg->arena, FAY_RULE_CFI_TARGET, insn->address,
				  "goes to 0x%llx, which is not in the code",
				  (unsigned long long)insn->target);
	add_leader(b, insn->target);
	return fine;
}

/* Marks the instruction's bytes; refuses bytes that already are something else. */
static struct fay_refusal claim_bytes(struct builder *b, const struct fay_insn *insn,
				      uint32_t index)
{
	uint32_t *at = b->cfg->at + (insn->address - b->cfg->image->text.start);

	for (unsigned i = 0; i < insn->length; i++)
		if (at[i])
			return fay_refuse(
				b->cfg->arena, FAY_RULE_CFI_OVERLAP, insn->address,
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
	case OP_JMP: *falls = false; return add_target(b, insn);
	case OP_JCC:
	case OP_CALL:
		r = add_target(b, insn);
		if (r.rule == FAY_RULE_NONE && fay_cfg_in_text(b->cfg, next))
			add_leader(b, next);
		return r;
	case OP_RET: *falls = false; return fine;
	case OP_JMP_TABLE: {
		uint32_t first, count = fay_cfg_jumps(b->cfg, insn->address, &first);

		for (uint32_t i = first; i < first + count; i++)
			/* in the code: the analysis saw to it */
			add_leader(b, b->cfg->jumps[i].to);
		*falls = false;
		return fine;
	}
	default: return fine;
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

		if (!fay_cfg_in_text(cfg, address)) {
			uint64_t last = cfg->insn_count ? cfg->insns[cfg->insn_count - 1].address
							: cfg->image->text.start;

			return fay_refuse(
				cfg->arena, FAY_RULE_CFI_END, last,
				"execution runs off the end of the code after this instruction");
		}
		mark = cfg->at[address - cfg->image->text.start];
		if (mark == CFG_INTERIOR)
			return fay_refuse(cfg->arena, FAY_RULE_CFI_OVERLAP, address,
					  "reached as an instruction, but inside another one");
		if (mark)
			return fine;
		if (cfg->insn_count >= FAY_MAX_INSNS)
			return fay_refuse(cfg->arena, FAY_RULE_LIM_RESOURCE, address,
					  "more than %u instructions", FAY_MAX_INSNS);
		if (b->deadline && !(cfg->insn_count & 1023) && fay_monotonic_ns() > b->deadline)
			return fay_refuse(cfg->arena, FAY_RULE_LIM_TIME, address,
					  "time ran out while decoding");
		if (!grow_insns(b))
			return fay_cfg_no_memory(cfg->arena);
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
		bool cut = !i || b->leader[insn->address - cfg->image->text.start] ||
			   fay_insn_ends_block(before) ||
			   before->address + before->length != insn->address;
		bool split = !cut && insn->op == OP_SETCC && fay_cfg_feeds_branch(cfg, i);

		if (cut || split)
			cfg->blocks[cfg->block_count++] =
				(struct fay_block){ .first = i, .split = split };
		cfg->blocks[cfg->block_count - 1].count++;
		cfg->block_of[i] = cfg->block_count - 1;
	}
	return fay_cfg_mark_booleans(cfg);
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
		r = fay_cfg_no_memory(arena);
	for (uint32_t i = 0; r.rule == FAY_RULE_NONE && i < image->probe_count; i++) {
		uint64_t entry = image->layout_base + image->probes[i].code_offset;

		if (fay_cfg_in_text(cfg, entry))
			add_leader(&b, entry);
		else
			r = fay_refuse(arena, FAY_RULE_CFI_TARGET, entry,
				       "probe %u starts outside the code", i);
	}
	while (r.rule == FAY_RULE_NONE && b.work_count)
		r = decode_run(&b, image->text.start + b.work[--b.work_count]);
	if (r.rule == FAY_RULE_NONE && !make_blocks(&b))
		r = fay_cfg_no_memory(arena);
	if (b.agree)
		fay_agree_destroy(b.agree);
	free(b.leader);
	free(b.work);
	return r;
}

struct fay_refusal fay_cfg_build(struct fay_cfg *cfg, struct fay_arena *arena,
				 const struct fay_image *image, uint64_t deadline)
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

struct fay_refusal fay_cfg_extend(struct fay_cfg *cfg, const struct fay_jump *jumps, uint32_t count,
				  uint64_t deadline)
{
	struct fay_cfg old = *cfg;
	uint32_t total = old.jump_count, kept = 0;
	struct fay_jump *all;

	if (count > FAY_MAX_TARGETS || total > FAY_MAX_TARGETS - count)
		return fay_refuse(cfg->arena, FAY_RULE_LIM_RESOURCE, jumps[0].from,
				  "indirect jumps with more than %u targets", FAY_MAX_TARGETS);
	all = malloc((total + count) * sizeof(*all));
	if (!all)
		return fay_cfg_no_memory(cfg->arena);
	if (total)
		memcpy(all, old.jumps, total * sizeof(*all));
	memcpy(all + total, jumps, count * sizeof(*all));
	qsort(all, total + count, sizeof(*all), fay_jump_compare);
	for (uint32_t i = 0; i < total + count; i++)
		if (!kept || fay_jump_compare(&all[kept - 1], &all[i]))
			all[kept++] = all[i];
	*cfg = (struct fay_cfg){
		.image = old.image, .arena = old.arena, .jumps = all, .jump_count = kept
	};
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

	if (!fay_cfg_in_text(cfg, address))
		return FAY_NONE;
	mark = cfg->at[address - cfg->image->text.start];
	if (!mark || mark == CFG_INTERIOR)
		return FAY_NONE;
	block = cfg->block_of[mark - 1];
	return cfg->blocks[block].first == mark - 1 ? block : FAY_NONE;
}
