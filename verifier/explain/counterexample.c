/* SPDX-License-Identifier: MIT */
/*
 * Counterexamples: concrete executions from the probe's entry that break a rule.
 *
 * The first candidate is the solver's model, where the query began at the entry; then inputs made
 * of the code's own constants, since what goes wrong mostly goes wrong next to one of them. Each
 * candidate is run by the concrete interpreter, with the abstract state of that one path in step:
 * it says what kind of value each register holds (a fact that numbers do not show). An execution
 * counts only if it reaches the obligation's instruction, in its call context, and breaks the rule
 * there:
 *
 *   bounds      the address computed lies outside what is allowed
 *   division    the interpreter says that it faults
 *   the others  the abstract state of exactly this path breaks the same rule
 *
 * Limits: MAX_CANDIDATES inputs, MAX_STEPS instructions each, MAX_MILLISECONDS together. Helpers
 * are emulated: fay_flush and fay_emit return 0, fay_try_read fails and zeroes.
 */
#include "counterexample_parts.h"

#include <stdlib.h>
#include <string.h>

#define MAX_CANDIDATES 96u
#define MAX_STEPS 50000u
#define MAX_MILLISECONDS 300u

#define STACK_ABOVE 64u /* bytes from rsp at entry upward that exist */

static uint64_t next_random(struct replay *r)
{
	r->random ^= r->random << 13;
	r->random ^= r->random >> 7;
	r->random ^= r->random << 17;
	return r->random;
}

static uint64_t address_of(const struct replay *r, const struct fay_operand *mem)
{
	uint64_t a = (uint64_t)mem->disp;

	if (mem->rip)
		return a;
	if (mem->base != FAY_NO_REG)
		a += r->m.gpr[mem->base];
	if (mem->index != FAY_NO_REG)
		a += r->m.gpr[mem->index] * mem->scale;
	return a;
}

/* ---- set-up ---- */

static bool add_region(struct replay *r, uint64_t base, uint64_t size, uint8_t *bytes,
		       bool writable, const char *name)
{
	if (size)
		r->m.regions[r->m.region_count++] = (struct fay_exec_region){ .base = base,
									      .size = size,
									      .bytes = bytes,
									      .writable = writable,
									      .name = name };
	return true;
}

static bool create(struct replay *r)
{
	const struct fay_image *image = r->an->image;

	r->size[REGION_EVENT] = sizeof(r->event);
	r->size[REGION_LOCAL] = image->header.local_size;
	r->size[REGION_GLOBAL] = image->header.global_size;
	r->size[REGION_STACK] = FAY_STACK_HARD + 256 + STACK_ABOVE;
	for (unsigned i = 0; i < REGION_COUNT; i++) {
		if (i == REGION_EVENT || i == REGION_RODATA)
			continue;
		r->memory[i] = calloc(r->size[i] + 8, 1);
		r->touched[i] = calloc(r->size[i] + 8, 1);
		if (!r->memory[i] || !r->touched[i])
			return false;
	}
	add_region(r, region_base(r, REGION_EVENT), sizeof(r->event), r->event, false, "event");
	add_region(r, region_base(r, REGION_LOCAL), r->size[REGION_LOCAL], r->memory[REGION_LOCAL],
		   true, "local");
	add_region(r, region_base(r, REGION_GLOBAL), r->size[REGION_GLOBAL],
		   r->memory[REGION_GLOBAL], true, "global");
	add_region(r, region_base(r, REGION_STACK) + STACK_ABOVE - r->size[REGION_STACK],
		   r->size[REGION_STACK], r->memory[REGION_STACK], true, "stack");
	if (image->rodata.size)
		add_region(r, image->rodata.start, image->rodata.size,
			   image->layout.bytes + (image->rodata.start - image->layout_base), false,
			   "rodata");
	return true;
}

static uint64_t pick(struct replay *r)
{
	const struct fay_thresholds *t = &r->an->thresholds;

	return t->count ? (uint64_t)t->values[next_random(r) % t->count] : 0;
}

static void fill_words(struct replay *r, uint8_t *bytes, uint64_t size, unsigned candidate,
		       uint64_t same)
{
	for (uint64_t i = 0; i + 8 <= size; i += 8) {
		uint64_t word = candidate < 64 ? same : pick(r);

		memcpy(bytes + i, &word, 8);
	}
}

/* What the CPU is to begin with. */
static void note_start(struct replay *r)
{
	struct fay_native_case *c = r->native;

	if (!c)
		return;
	memcpy(c->event, r->event, sizeof(c->event));
	memcpy(c->local, r->memory[REGION_LOCAL],
	       r->size[REGION_LOCAL] < sizeof(c->local) ? r->size[REGION_LOCAL] : sizeof(c->local));
	memcpy(c->global, r->memory[REGION_GLOBAL],
	       r->size[REGION_GLOBAL] < sizeof(c->global) ? r->size[REGION_GLOBAL]
							  : sizeof(c->global));
	memcpy(c->gpr, r->m.gpr, sizeof(c->gpr));
	c->poke_count = 0;
}

static void note_poke(struct replay *r, unsigned region, uint64_t offset, unsigned size,
		      uint64_t value)
{
	struct fay_native_case *c = r->native;

	if (c && c->poke_count < FAY_NATIVE_POKES)
		c->pokes[c->poke_count++] = (struct fay_native_poke){ .step = r->step_count,
								      .region = (uint8_t)region,
								      .size = (uint8_t)size,
								      .offset = (uint32_t)offset,
								      .value = value };
}

/* Candidate inputs: the model, all zero, all ones, one constant everywhere, mixtures. */
static void prepare(struct replay *r, unsigned candidate)
{
	const struct fay_thresholds *t = &r->an->thresholds;
	bool model = r->model && candidate == 0;
	uint64_t same = candidate == 2 ? UINT64_MAX
			: candidate < 3 || !t->count
				? 0
				: (uint64_t)t->values[(candidate * 7) % t->count];

	for (unsigned i = REGION_LOCAL; i < REGION_COUNT; i++) {
		if (!r->memory[i])
			continue;
		memset(r->memory[i], 0, r->size[i]);
		memset(r->touched[i], 0, r->size[i]);
		/* Large state is left zero but for its beginning: filling it would cost more than
		 * it finds. */
		if (i != REGION_STACK && candidate > 2)
			fill_words(r, r->memory[i], r->size[i] < 4096 ? r->size[i] : 4096,
				   candidate, same);
	}
	if (model)
		memcpy(r->event, r->model->event, sizeof(r->event));
	else
		fill_words(r, r->event, sizeof(r->event), candidate, same);
	for (unsigned i = 0; i < 16; i++)
		r->m.gpr[i] = 0x5a5a5a5a00000000u + i;
	r->m.gpr[FAY_RDI] = region_base(r, REGION_EVENT);
	r->m.gpr[FAY_RSI] = region_base(r, REGION_LOCAL);
	r->m.gpr[FAY_RDX] = region_base(r, REGION_GLOBAL);
	r->m.gpr[FAY_RSP] = region_base(r, REGION_STACK);
	r->m.flags = 0;
	r->m.flags_undefined = FLAG_ALL;
	r->read_count = 0;
	r->path_length = 0;
	r->step_count = 0;
	note_start(r);
}

/* ---- running ---- */

/* Before a read of state: the model's value goes in, and what is read is noted. */
static void before_read(struct replay *r, uint32_t node, uint32_t insn_index,
			const struct fay_insn *insn)
{
	const struct fay_operand *mem = memory_operand(insn);
	unsigned size =
		(insn->op == OP_MOVZX || insn->op == OP_MOVSX ? insn->src_width : insn->width) / 8;
	uint64_t address;

	if (!mem || (insn->op == OP_MOV && mem == &insn->dst))
		return;
	address = address_of(r, mem);
	for (unsigned region = REGION_LOCAL; region <= REGION_GLOBAL; region++) {
		uint64_t offset = address - region_base(r, region), value = 0;
		bool shown = false;

		if (offset >= r->size[region] || size > r->size[region] - offset)
			continue;
		for (unsigned i = 0; i < size; i++)
			shown |= r->touched[region][offset + i];
		if (shown)
			return;
		for (uint32_t i = 0; r->model && i < r->model->load_count; i++)
			if (r->model->loads[i].node == node &&
			    r->model->loads[i].insn == insn_index &&
			    r->model->loads[i].size == size) {
				memcpy(r->memory[region] + offset, &r->model->loads[i].value, size);
				note_poke(r, region, offset, size, r->model->loads[i].value);
			}
		memset(r->touched[region] + offset, 1, size);
		memcpy(&value, r->memory[region] + offset, size);
		if (r->read_count < MAX_READS) {
			r->reads[r->read_count].region = (uint8_t)region;
			r->reads[r->read_count].offset = (uint32_t)offset;
			r->reads[r->read_count].size = size;
			r->reads[r->read_count++].value = value;
		}
	}
}

/* Whether executing `insn` now breaks the rule. The abstract state of this path is in an->current.
 * */
static bool breaks(struct replay *r, const struct fay_insn *insn)
{
	struct fay_analysis *an = r->an;
	const struct fay_operand *mem = memory_operand(insn);
	uint32_t pending = an->pending_count;
	bool broken = false;

	if (r->o->goal == GOAL_DIVIDE) {
		struct fay_machine copy = r->m;

		return fay_exec_step(&copy, insn) == EXEC_DIVIDE;
	}
	if (r->o->size && mem) {
		int64_t offset = (int64_t)(address_of(r, mem) - region_base(r, r->o->region));

		return offset < r->o->low || offset > r->o->high;
	}
	if (r->o->missing)
		return false; /* this path alone would not show it */
	an->checking = true;
	if (!fay_transfer_step(an, r->o->node, r->o->insn))
		for (uint32_t i = pending; i < an->pending_count; i++)
			broken |= an->pending[i].rule == r->o->rule && !an->pending[i].missing;
	an->checking = false;
	an->pending_count = pending;
	return broken;
}

static void emulate_helper(struct replay *r, const struct fay_insn *insn, int helper)
{
	static const uint8_t clobbered[] = { FAY_RCX, FAY_RDX, FAY_RSI, FAY_RDI,
					     FAY_R8,  FAY_R9,  FAY_R10, FAY_R11 };

	r->m.gpr[FAY_RAX] = 0;
	if (helper == FAY_HELPER_TRY_READ) {
		uint64_t to = r->m.gpr[FAY_RDI], size = r->m.gpr[FAY_RSI];

		r->m.gpr[FAY_RAX] = UINT64_MAX;
		for (unsigned i = 0; i < r->m.region_count; i++) {
			const struct fay_exec_region *e = &r->m.regions[i];

			if (e->writable && to - e->base < e->size &&
			    size <= e->size - (to - e->base))
				memset(e->bytes + (to - e->base), 0, size);
		}
	}
	for (unsigned i = 0; i < sizeof(clobbered); i++)
		r->m.gpr[clobbered[i]] = 0x6b6b6b6b6b6b6b6bu;
	r->m.rip = insn->address + insn->length;
}

/* Slots are no region of the replay: what is in them, an accepted instruction can only move and
 * call. */
static enum fay_exec_status load_helper(struct replay *r, const struct fay_insn *insn, int helper)
{
	r->m.gpr[insn->dst.reg] = FAY_NATIVE_HELPER + (unsigned)helper;
	r->m.rip = insn->address + insn->length;
	return EXEC_OK;
}

static void note_block(struct replay *r, uint32_t node)
{
	const struct fay_analysis *an = r->an;
	uint64_t offset =
		an->cfg->insns[an->cfg->blocks[an->graph->nodes[node].block].first].address -
		an->image->text.start;

	if (r->path_length == FAY_MAX_PATH_STEPS) {
		memmove(r->path, r->path + 1, (FAY_MAX_PATH_STEPS - 1) * sizeof(r->path[0]));
		r->path_length--;
	}
	r->path[r->path_length++] = offset;
}

/* Runs from the entry. True if the obligation is broken. */
static bool run(struct replay *r, uint64_t until)
{
	struct fay_analysis *an = r->an;
	uint32_t node = 0, steps = 0;

	r->m.rip = an->cfg->insns[an->cfg->blocks[an->graph->nodes[0].block].first].address;
	fay_state_entry(an->current);
	while (node != FAY_NONE) {
		const struct fay_node *n = &an->graph->nodes[node];
		const struct fay_block *block = &an->cfg->blocks[n->block];
		const struct fay_insn *last = &an->cfg->insns[block->first + block->count - 1];
		uint32_t to;

		note_block(r, node);
		for (uint32_t i = 0; i < block->count; i++) {
			const struct fay_insn *insn = &an->cfg->insns[block->first + i];
			enum fay_exec_status status;
			int loaded = fay_helper_loaded(an->image, insn), called;

			before_read(r, node, block->first + i, insn);
			if (r->step_count < FAY_NATIVE_STEPS)
				r->steps[r->step_count] =
					(uint32_t)(insn->address - an->image->text.start);
			r->step_count++;
			if (node == r->o->node && block->first + i == r->o->insn && breaks(r, insn))
				return true;
			called = fay_helper_called(an->image, an->current, insn);
			if (++steps > MAX_STEPS || !fay_transfer_step(an, node, block->first + i))
				return false;
			status = loaded < 0 ? fay_exec_step(&r->m, insn)
					    : load_helper(r, insn, loaded);
			if (status == EXEC_CALL_HELPER)
				emulate_helper(r, insn, called);
			else if (status != EXEC_OK)
				return false;
		}
		to = fay_exec_successor(an->graph, an->cfg, node, &r->m);
		if (last->op == OP_JCC && to != FAY_NONE &&
		    last->target != last->address + last->length &&
		    !fay_transfer_assume(an, an->current, (enum fay_cc)last->cc,
					 r->m.rip == last->target))
			return false;
		if (!fay_state_canonical(an->current) || fay_monotonic_ns() > until)
			return false;
		node = to;
	}
	return false;
}

bool fay_counterexample_find(struct fay_analysis *an, const struct fay_obligation *o,
			     const struct fay_model *model, struct fay_rejection *rejection)
{
	struct replay *r = calloc(1, sizeof(*r));
	uint64_t until = fay_monotonic_ns() + MAX_MILLISECONDS * (uint64_t)1000000;
	bool found = false;

	if (!r)
		return false;
	if (an->deadline && an->deadline < until)
		until = an->deadline;
	r->an = an;
	r->o = o;
	r->model = model;
	r->random = 0x9e3779b97f4a7c15u;
	r->native = fay_arena_alloc(an->arena, sizeof(*r->native));
	if (create(r)) {
		for (unsigned c = model ? 0 : 1;
		     c < MAX_CANDIDATES && !found && fay_monotonic_ns() < until; c++) {
			prepare(r, c);
			found = run(r, until);
			if (c == 0)
				r->model = NULL;
		}
		if (found) {
			rejection->counterexample = fay_replay_describe(r);
			rejection->replayed = rejection->counterexample != NULL;
			rejection->native_case = fay_replay_native_case(r);
			rejection->path_length = r->path_length;
			memcpy(rejection->path, r->path, sizeof(r->path));
		}
	}
	for (unsigned i = 0; i < REGION_COUNT; i++) {
		free(r->memory[i]);
		free(r->touched[i]);
	}
	free(r);
	return found;
}
