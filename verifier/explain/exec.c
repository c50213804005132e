/* SPDX-License-Identifier: MIT */
/*
 * The concrete interpreter: one normalised instruction on one machine state.
 *
 * What an operation computes is said in semantics*.c; here is the machine: registers, flags,
 * regions of memory. It replays counterexamples, and tests/verifier/silicon/test_silicon.c compares
 * it with the CPU, form by form, and with the solver's terms. A fault changes nothing: reads and
 * places are checked as they come, and everything that is written waits until the end. Flags that
 * the SDM leaves undefined are marked in flags_undefined and their value is not meant.
 *
 * Where the SDM leaves a result undefined (bsf/bsr of 0) the destination is kept; the analysis
 * assumes nothing of it. Alignment faults are off (AC is clear in all traced programs that matter)
 * and rdtsc yields the values that the caller put into rdx and rax.
 */
#include <string.h>

#include "exec.h"
#include "verifier/isa/isa.h"
#include "verifier/prover/graph/cfg.h"

#define MAX_WRITES 4

/* One instruction in flight. The semantics see `semantics`, its first member. */
struct step {
	struct fay_semantics semantics;
	struct fay_machine *machine;
	enum fay_exec_status status;
	struct {
		uint8_t *place;     /* memory; NULL: register */
		uint8_t reg, shift; /* shift: 8 for ah, ch, dh, bh */
		unsigned width;
		uint64_t value;
	} writes[MAX_WRITES];
	unsigned write_count;
	struct {
		uint8_t *to, *from; /* from NULL: filled with `value` */
		uint64_t count, value;
		unsigned size;
	} string;
	uint64_t rip;
	/* flags: values, which are defined anew, which become undefined */
	uint8_t set, touched, undefined;
};

static struct step *step_of(struct fay_semantics *s)
{
	return (struct step *)s;
}

static uint64_t width_mask(unsigned width)
{
	return width == 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1;
}

/* The `size` bytes at `address`, NULL after noting the fault. */
static uint8_t *find(struct step *step, uint64_t address, unsigned size, bool write)
{
	struct fay_machine *machine = step->machine;

	for (unsigned i = 0; i < machine->region_count; i++) {
		struct fay_exec_region *region = &machine->regions[i];
		uint64_t offset = address - region->base;

		if (offset < region->size && size <= region->size - offset &&
		    (!write || region->writable))
			return region->bytes + offset;
	}
	if (step->status == EXEC_OK) {
		machine->fault_address = address;
		machine->fault_size = size;
		step->status = write ? EXEC_FAULT_WRITE : EXEC_FAULT_READ;
	}
	return NULL;
}

static uint64_t load(struct step *step, uint64_t address, unsigned size)
{
	uint8_t *bytes = find(step, address, size, false);
	uint64_t value = 0;

	if (bytes)
		memcpy(&value, bytes, size);
	return value;
}

static uint64_t memory_address(const struct fay_machine *machine, const struct fay_operand *o)
{
	uint64_t address = (uint64_t)o->disp;

	if (o->base != FAY_NO_REG)
		address += machine->gpr[o->base];
	if (o->index != FAY_NO_REG)
		address += machine->gpr[o->index] * o->scale;
	return address;
}

static struct fay_term exec_address(struct fay_semantics *s, const struct fay_operand *o)
{
	return fay_term_const(memory_address(step_of(s)->machine, o), 64);
}

static struct fay_term exec_read(struct fay_semantics *s, const struct fay_operand *o,
				 unsigned width)
{
	struct step *step = step_of(s);

	switch (o->kind) {
	case OPERAND_REG: return fay_term_const(step->machine->gpr[o->reg], width);
	case OPERAND_HIGH: return fay_term_const(step->machine->gpr[o->reg] >> 8, 8);
	case OPERAND_IMM: return fay_term_const((uint64_t)o->imm, width);
	case OPERAND_MEM:
		return fay_term_const(load(step, memory_address(step->machine, o), width / 8),
				      width);
	default: return fay_term_const(0, width);
	}
}

static void add_write(struct step *step, uint8_t *place, unsigned reg, unsigned width,
		      uint64_t value)
{
	unsigned i = step->write_count++;

	if (i >= MAX_WRITES)
		__builtin_trap(); /* no row writes that much: a semantics function is wrong */
	step->writes[i].place = place;
	step->writes[i].reg = (uint8_t)reg;
	step->writes[i].shift = 0;
	step->writes[i].width = width;
	step->writes[i].value = value;
}

static void exec_write(struct fay_semantics *s, const struct fay_operand *o, unsigned width,
		       struct fay_term v)
{
	struct step *step = step_of(s);
	uint8_t *place;

	if (o->kind == OPERAND_REG) {
		add_write(step, NULL, o->reg, width, (uint64_t)v.value);
	} else if (o->kind == OPERAND_HIGH) {
		add_write(step, NULL, o->reg, 8, (uint64_t)v.value);
		step->writes[step->write_count - 1].shift = 8;
	} else if (o->kind == OPERAND_MEM) {
		place = find(step, memory_address(step->machine, o), width / 8, true);
		if (place)
			add_write(step, place, 0, width, (uint64_t)v.value);
	}
}

static struct fay_term exec_flag(struct fay_semantics *s, uint8_t flag)
{
	struct step *step = step_of(s);

	if ((step->machine->flags_undefined & flag) && step->status == EXEC_OK)
		step->status = EXEC_UNDEFINED_FLAGS;
	return fay_term_bool(step->machine->flags & flag);
}

static void exec_flag_set(struct fay_semantics *s, struct fay_term condition, uint8_t flag,
			  struct fay_term value)
{
	struct step *step = step_of(s);

	if (!condition.value)
		return;
	step->touched |= flag;
	step->undefined &= (uint8_t)~flag;
	step->set = value.value ? step->set | flag : step->set & (uint8_t)~flag;
}

static void exec_flag_undefine(struct fay_semantics *s, struct fay_term condition, uint8_t flags)
{
	if (condition.value)
		step_of(s)->undefined |= flags;
}

static struct fay_term exec_unknown(struct fay_semantics *s, struct fay_term current)
{
	(void)s;
	return current;
}

static void exec_push(struct fay_semantics *s, struct fay_term v)
{
	struct step *step = step_of(s);
	uint64_t rsp = step->machine->gpr[FAY_RSP] - 8;
	uint8_t *place = find(step, rsp, 8, true);

	if (!place)
		return;
	add_write(step, place, 0, 64, (uint64_t)v.value);
	add_write(step, NULL, FAY_RSP, 64, rsp);
}

static struct fay_term exec_pop(struct fay_semantics *s, unsigned reg)
{
	struct step *step = step_of(s);
	uint64_t address = step->machine->gpr[reg], value = load(step, address, 8);

	add_write(step, NULL, FAY_RSP, 64, address + 8);
	return fay_term_const(value, 64);
}

static struct fay_term exec_code_address(struct fay_semantics *s, uint64_t address)
{
	(void)s;
	return fay_term_const(address, 64);
}

static void exec_jump(struct fay_semantics *s, struct fay_term condition, struct fay_term target)
{
	if (condition.value)
		step_of(s)->rip = (uint64_t)target.value;
}

static void exec_divide_error(struct fay_semantics *s, struct fay_term condition)
{
	if (condition.value && step_of(s)->status == EXEC_OK)
		step_of(s)->status = EXEC_DIVIDE;
}

static void exec_call_helper(struct fay_semantics *s)
{
	step_of(s)->status = EXEC_CALL_HELPER;
}
static void exec_vector(struct fay_semantics *s)
{
	step_of(s)->status = EXEC_NOT_MODELLED;
}

/* All of both places must exist: the verifier demands no less, and it keeps a fault without effect.
 * */
static void exec_string(struct fay_semantics *s, struct fay_term count, const struct fay_term *fill)
{
	struct step *step = step_of(s);
	uint64_t *gpr = step->machine->gpr, n = (uint64_t)count.value;
	unsigned size = s->insn->width / 8;

	if (n == 0)
		return;
	if (n > UINT32_MAX / 8)
		n = UINT32_MAX / 8; /* larger than any region: faults */
	step->string.to = find(step, gpr[FAY_RDI], (unsigned)n * size, true);
	if (!fill)
		step->string.from = find(step, gpr[FAY_RSI], (unsigned)n * size, false);
	step->string.value = fill ? (uint64_t)fill->value : 0;
	step->string.count = n;
	step->string.size = size;
}

static const struct fay_semantics_ops machine_ops = {
	.read = exec_read,
	.write = exec_write,
	.address = exec_address,
	.flag = exec_flag,
	.flag_set = exec_flag_set,
	.flag_undefine = exec_flag_undefine,
	.unknown = exec_unknown,
	.push = exec_push,
	.pop = exec_pop,
	.code_address = exec_code_address,
	.jump = exec_jump,
	.divide_error = exec_divide_error,
	.call_helper = exec_call_helper,
	.string = exec_string,
	.vector = exec_vector,
	/* No `build`: every term is known. */
};

static void commit(struct step *step)
{
	struct fay_machine *m = step->machine;

	/* upward, one after the other: they may overlap, also an element with itself */
	for (uint64_t i = 0; i < step->string.count; i++)
		memmove(step->string.to + i * step->string.size,
			step->string.from ? (void *)(step->string.from + i * step->string.size)
					  : (void *)&step->string.value,
			step->string.size);
	for (unsigned i = 0; i < step->write_count; i++) {
		unsigned reg = step->writes[i].reg, shift = step->writes[i].shift;
		uint64_t mask = width_mask(step->writes[i].width) << shift,
			 value = step->writes[i].value << shift;

		if (step->writes[i].place)
			memcpy(step->writes[i].place, &value, step->writes[i].width / 8);
		else
			m->gpr[reg] = step->writes[i].width >= 32
					      ? value & mask
					      : (m->gpr[reg] & ~mask) | (value & mask);
	}
	m->flags = (uint8_t)((m->flags & ~step->touched) | (step->set & step->touched));
	m->flags_undefined = (uint8_t)((m->flags_undefined & ~step->touched) | step->undefined);
	m->rip = step->rip;
}

enum fay_exec_status fay_exec_step(struct fay_machine *machine, const struct fay_insn *insn)
{
	struct step step = { .semantics = { .ops = &machine_ops, .insn = insn, .exact = true },
			     .machine = machine,
			     .status = EXEC_OK,
			     .rip = insn->address + insn->length };

	fay_semantics_run(&step.semantics);
	if (step.status == EXEC_OK)
		commit(&step);
	return step.status;
}

uint32_t fay_exec_successor(const struct fay_graph *graph, const struct fay_cfg *cfg, uint32_t node,
			    const struct fay_machine *m)
{
	const struct fay_node *n = &graph->nodes[node];
	const struct fay_block *block = &cfg->blocks[n->block];
	const struct fay_insn *last = &cfg->insns[block->first + block->count - 1];
	bool both = last->op == OP_JCC && n->succ[0] != FAY_NONE && n->succ[1] != FAY_NONE &&
		    graph->nodes[n->succ[0]].block == graph->nodes[n->succ[1]].block;

	/* one block in two variants: the condition says which, as if a jump to 0 asked it */
	if (n->branch || both) {
		struct fay_insn jump = { .op = OP_JCC,
					 .cc = n->branch ? n->branch - 1 : last->cc,
					 .width = 64,
					 .address = m->rip,
					 .length = 2 };
		struct fay_machine after = *m;

		return fay_exec_step(&after, &jump) == EXEC_OK ? n->succ[after.rip ? 1 : 0]
							       : FAY_NONE;
	}
	for (uint32_t k = 0; k < fay_node_fanout(n); k++) {
		uint32_t to = fay_node_succ(n, k);

		if (to != FAY_NONE &&
		    cfg->insns[cfg->blocks[graph->nodes[to].block].first].address == m->rip)
			return to;
	}
	return FAY_NONE;
}
