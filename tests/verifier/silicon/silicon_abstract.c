/* SPDX-License-Identifier: MIT */
/*
 * A random abstract state around a concrete one, the transfer function on it, and whether the
 * result contains the concrete result.
 *
 * The memory of the test is the abstract state's own frame: rsp at entry is its end. A register
 * that the instruction uses as an address is a pointer to the stack; every other one, and every
 * slot, is a number of which something random and true is known, or partly not initialised.
 */
#include "silicon_check.h"

#include <stdlib.h>
#include <string.h>

#include "silicon.h"
#include "verifier/prover/transfer/transfer.h"

static struct fay_image image;
static struct fay_policy policy;
static struct fay_probe_facts facts;
static struct fay_insn one;
static struct fay_block block = { .first = 0, .count = 1 };
static struct fay_node node;
static struct fay_context context;
static struct fay_cfg cfg = { .insns = &one, .insn_count = 1, .blocks = &block, .block_count = 1 };
static struct fay_graph graph = {
	.node_count = 1, .context_count = 1, .nodes = &node, .contexts = &context
};
static struct fay_state *entry[1];
static struct fay_analysis an = { .image = &image,
				  .policy = &policy,
				  .cfg = &cfg,
				  .graph = &graph,
				  .refine = true,
				  .facts = &facts,
				  .in = entry };

bool silicon_check_create(struct fay_arena *arena)
{
	fay_policy_default(&policy);
	policy.max_stack = FAY_STACK_HARD;
	context.parent = FAY_NONE;
	node.succ[0] = node.succ[1] = FAY_NONE;
	an.current = fay_state_create(FAY_MAX_LOCATIONS);
	an.branch = fay_state_create(FAY_MAX_LOCATIONS);
	entry[0] = fay_state_create(FAY_MAX_LOCATIONS);
	an.arena = arena;
	return an.current && an.branch && entry[0];
}

void silicon_check_destroy(void)
{
	free(an.current);
	free(an.branch);
	free(entry[0]);
	free(an.pending);
}

void silicon_check_reset(struct fay_arena *arena)
{
	an.arena = arena;
}

/* ---- a random abstract state ---- */

/* A set that contains c. */
static struct fay_scalar around(uint64_t c)
{
	struct fay_scalar s = fay_scalar_const(c), t = fay_scalar_top();
	uint64_t low = random_value(), high = random_value();

	switch (next_random() % 7) {
	case 0: return t;
	case 1: return s;
	case 2: return fay_scalar_range(low < c ? low : c, high > c ? high : c);
	case 3:
		return fay_scalar_srange(
			(int64_t)low<(int64_t)c ? (int64_t)low : (int64_t)c, (int64_t)high>(int64_t)
					c
				? (int64_t)high
				: (int64_t)c);
	case 4:
		return fay_scalar_range(c - (c < 5 ? c : next_random() % 5),
					c > UINT64_MAX - 9 ? c : c + next_random() % 9);
	case 5:
		t.unknown = low;
		t.value = c & ~low;
		break;
	default: t = fay_scalar_const(high); t = fay_scalar_join(&t, &s);
	}
	fay_scalar_normalise(&t);
	return t;
}

static struct fay_value random_number(struct fay_state *s, uint64_t c, bool random)
{
	struct fay_value v = fay_value_scalar(random ? around(c) : fay_scalar_top());

	v.id = s->next_id++;
	if (random && next_random() % 16 == 0)
		v.init = (uint8_t)next_random();
	if (!v.init)
		v.init = 1;
	/* Nothing may be known of bytes that must not be read. */
	if (v.init != 0xff)
		v.s = fay_scalar_top();
	return v;
}

static bool is_address(const struct fay_insn *insn, unsigned reg)
{
	if (insn->op == OP_REP_MOVS || insn->op == OP_REP_STOS)
		return reg == FAY_RDI || (reg == FAY_RSI && insn->op == OP_REP_MOVS);
	if (reg == FAY_RBP)
		return insn->op == OP_LEAVE;
	return reg == FAY_R14 && insn->op != OP_LEA &&
	       (insn->dst.kind == OPERAND_MEM || insn->src.kind == OPERAND_MEM);
}

static struct fay_value pointer(struct fay_state *s, int64_t offset)
{
	struct fay_value v = fay_value_scalar(fay_scalar_const((uint64_t)offset));

	v.id = s->next_id++;
	v.kind = KIND_POINTER;
	v.tag = REGION_STACK;
	return v;
}

static uint64_t entry_rsp(const struct silicon_state *before)
{
	return before->base + SILICON_BELOW + SILICON_STACK;
}

static void random_slots(struct fay_state *s, const struct silicon_state *before, bool random)
{
	for (unsigned i = 0; i < SILICON_STACK; i += 8) {
		uint64_t c;
		struct fay_value v;

		memcpy(&c, before->memory + SILICON_BELOW + i, 8);
		v = random_number(s, c, random);
		fay_stack_store(s, (int64_t)i - SILICON_STACK, 8, &v);
	}
}

struct fay_analysis *silicon_analysis(const struct fay_insn *insn,
				      const struct silicon_state *before, bool random)
{
	struct fay_state *s = an.current;

	one = *insn;
	fay_state_entry(s);
	s->next_id = 100;
	fay_state_set_depth(s, SILICON_STACK);
	s->loc[FAY_RSP] = pointer(s, -(int64_t)SILICON_STACK);
	for (unsigned r = 0; r < 16; r++) {
		if (r == FAY_RSP)
			continue;
		if (is_address(insn, r))
			s->loc[r] = pointer(s, (int64_t)(before->gpr[r] - entry_rsp(before)));
		else
			s->loc[r] = random_number(s, before->gpr[r], random);
	}
	if (insn->op == OP_REP_MOVS || insn->op == OP_REP_STOS)
		s->loc[FAY_RCX] = fay_value_scalar(fay_scalar_const(before->gpr[FAY_RCX]));
	/* An index small enough to stay inside, or a known one. */
	if (random && is_address(insn, FAY_R14))
		s->loc[FAY_R13] = fay_value_scalar(
			next_random() & 1 ? fay_scalar_range(0, 3)
					  : fay_scalar_const(before->gpr[FAY_R13]));
	random_slots(s, before, random);
	s->record = RECORD_NONE;
	s->flags_undefined = 0;
	s->flags_covered = 0;
	s->carry_inverted = false;
	fay_state_copy(entry[0], s);
	return &an;
}

/* ---- containment ---- */

static uint64_t concrete(const struct fay_value *v, uint64_t number, uint64_t top)
{
	return v->kind == KIND_POINTER ? number - top : number;
}

static bool contains(const struct fay_value *v, uint64_t number, uint64_t top, unsigned bytes)
{
	uint64_t mask = bytes == 8 ? UINT64_MAX : ((uint64_t)1 << 8 * bytes) - 1;

	if (!fay_value_numeric(v))
		return true; /* says nothing of the number */
	if (v->kind == KIND_SCALAR && v->init != 0xff)
		return true; /* compared byte by byte through init, in silicon_check_abstract */
	return fay_scalar_contains(&v->s, concrete(v, number, top) & mask);
}

/* Two locations of one name are at their distance. */
static bool names_hold(const struct fay_state *s, const uint64_t *gpr, uint64_t top)
{
	for (unsigned a = 0; a < 16; a++)
		for (unsigned b = a + 1; b < 16; b++) {
			const struct fay_value *x = &s->loc[a], *y = &s->loc[b];

			if (x->id && x->id == y->id && x->init == 0xff && y->init == 0xff &&
			    fay_value_numeric(x) && fay_value_numeric(y) &&
			    concrete(x, gpr[a], top) - x->delta !=
				    concrete(y, gpr[b], top) - y->delta)
				return false;
		}
	return true;
}

static bool registers_hold(const struct fay_state *s, const uint64_t *gpr, uint64_t top)
{
	for (unsigned r = 0; r < 16; r++)
		if (!contains(&s->loc[r], gpr[r], top, 8))
			return false;
	return true;
}

static bool memory_holds(struct fay_state *s, const uint8_t *memory, uint64_t top)
{
	int64_t depth = fay_state_depth(s);

	for (int64_t at = -depth; at < 0; at += 8) {
		uint64_t number;
		struct fay_value v;

		memcpy(&number, memory + SILICON_BELOW + SILICON_STACK + at, 8);
		if (fay_stack_load(s, at, 8, &v) == SLOT_OK && !contains(&v, number, top, 8))
			return false;
		for (unsigned half = 0; half < 8; half += 4)
			if (fay_stack_load(s, at + half, 4, &v) == SLOT_OK &&
			    !contains(&v, number >> 8 * half & UINT32_MAX, top, 4))
				return false;
	}
	return true;
}

static bool condition(uint8_t f, unsigned cc)
{
	bool cf = f & FLAG_CF, zf = f & FLAG_ZF, sf = f & FLAG_SF, of = f & FLAG_OF,
	     pf = f & FLAG_PF, holds = false;

	switch (cc >> 1) {
	case 0: holds = of; break;
	case 1: holds = cf; break;
	case 2: holds = zf; break;
	case 3: holds = cf || zf; break;
	case 4: holds = sf; break;
	case 5: holds = pf; break;
	case 6: holds = sf != of; break;
	case 7: holds = zf || sf != of; break;
	}
	return holds != (cc & 1);
}

/* What the record says of the operands when a condition holds must hold of them. */
static const char *check_conditions(const struct fay_machine *after, uint64_t top)
{
	uint8_t usable = FLAG_ALL & (uint8_t)~an.current->flags_undefined;

	if (after->flags_undefined & usable)
		return "a flag is undefined, and the transfer function calls it defined";
	/* copies of states cost; over many cases each condition has its turn */
	for (unsigned k = 0; k < 3; k++) {
		unsigned cc = next_random() & 15;
		uint8_t need = fay_cc_flags((enum fay_cc)cc);

		if ((need & usable) != need)
			continue;
		fay_state_copy(an.branch, an.current);
		if (!fay_transfer_assume(&an, an.branch, (enum fay_cc)cc,
					 condition(after->flags, cc)))
			return "a condition that holds is called impossible";
		if (!registers_hold(an.branch, after->gpr, top))
			return "a condition that holds says something false of a register";
	}
	return NULL;
}

/* ---- what must not be read ---- */

/* Bytes that count as initialised are the same whatever the others were. */
static const char *check_initialised(const struct fay_insn *insn,
				     const struct silicon_state *before,
				     const struct fay_machine *after)
{
	static uint8_t memory[SILICON_BELOW + SILICON_STACK];
	struct fay_machine m = { .region_count = 1, .flags = before->flags };
	bool any = false;

	memcpy(memory, before->memory, sizeof(memory));
	for (unsigned r = 0; r < 16; r++) {
		const struct fay_value *v = &entry[0]->loc[r];

		m.gpr[r] = before->gpr[r];
		for (unsigned b = 0; v->kind == KIND_SCALAR && b < 8; b++)
			if (!(v->init >> b & 1)) {
				m.gpr[r] ^= (next_random() & 0xff) << 8 * b;
				any = true;
			}
	}
	m.regions[0] =
		(struct fay_exec_region){ before->base, sizeof(memory), memory, true, "memory" };
	if (!any || fay_exec_step(&m, insn) != EXEC_OK)
		return NULL;
	for (unsigned r = 0; r < 16; r++) {
		const struct fay_value *v = &an.current->loc[r];
		uint64_t differ = m.gpr[r] ^ after->gpr[r];

		for (unsigned b = 0; b < 8; b++)
			if ((v->kind == KIND_POINTER ||
			     (v->kind == KIND_SCALAR && v->init >> b & 1)) &&
			    differ >> 8 * b & 0xff)
				return "an initialised byte depends on one that is not";
	}
	if ((m.flags ^ after->flags) & ~(an.current->flags_undefined | after->flags_undefined) &
	    FLAG_ALL)
		return "a defined flag depends on a byte that is not initialised";
	return NULL;
}

const char *silicon_check_abstract(const struct fay_insn *insn, const struct silicon_state *before,
				   const struct fay_machine *after, const uint8_t *memory,
				   uint64_t *ended)
{
	uint64_t top = entry_rsp(before);
	const char *wrong;

	silicon_analysis(insn, before, true);
	if (!registers_hold(an.current, before->gpr, top))
		return "the test's own abstract state does not contain the concrete one";
	an.checking = false;
	an.pending_count = 0;
	if (!fay_transfer_step(&an, 0, 0)) {
		/* The path ended: for a reason that can be named, or the transfer function denies
		 * what just happened. */
		fay_state_copy(an.current, entry[0]);
		an.checking = true;
		if (fay_transfer_step(&an, 0, 0) ||
		    (!an.pending_count && an.refusal.rule == FAY_RULE_NONE))
			return "the transfer function says that this cannot happen";
		++*ended;
		return NULL;
	}
	if (!registers_hold(an.current, after->gpr, top))
		return "a register is not in the abstract result";
	if (!memory_holds(an.current, memory, top))
		return "memory is not in the abstract result";
	if (!names_hold(an.current, after->gpr, top))
		return "two registers of one name are not at their distance";
	wrong = check_initialised(insn, before, after);
	return wrong ? wrong : check_conditions(after, top);
}
