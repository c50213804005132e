/* SPDX-License-Identifier: MIT */
/*
 * The proof of a probe as formulas, block by block.
 *
 * For each node of the graph: from its invariant alone, every instruction's obligations hold, and
 * along each edge the successor's invariant holds again (Floyd's method). The entry's convention
 * implies the first invariant. So if all of these are valid, so is the claim of docs/verifier.md,
 * for every execution; nothing of the abstract transfer functions need be believed, only the
 * invariants, which are hypotheses here and goals there.
 *
 * Obligations that take more than a block's invariant were proved over paths (smt_query.c) and are
 * written there; here they are assumed after.
 */
#include "smt_proof.h"

#include <stdlib.h>
#include <string.h>

#include "smt_kinds.h"
#include "smt_obligations.h"

/* ---- what the flags are of ---- */

static Z3_ast flag_formula(struct query *q, const struct fay_state *s, unsigned flag)
{
	unsigned w = s->flags_width;
	Z3_ast a = low_bits(q, q->record[0], w), b = low_bits(q, q->record[1], w),
	       r = low_bits(q, q->record[2], w), d;

	switch (s->record) {
	case RECORD_COMPARE:
		d = Z3_mk_bvsub(q->z, a, b);
		if (flag == CF) {
			d = Z3_mk_bvult(q->z, a, b);
			return s->carry_inverted ? negate(q, d) : d;
		}
		if (flag == ZF)
			return Z3_mk_eq(q->z, a, b);
		if (flag == SF)
			return top_bit(q, d, w);
		return top_bit(
			q, Z3_mk_bvand(q->z, Z3_mk_bvxor(q->z, a, b), Z3_mk_bvxor(q->z, a, d)), w);
	case RECORD_RESULT:
	case RECORD_LOGIC:
		if (flag == ZF)
			return Z3_mk_eq(q->z, r, bits(q, 0, w));
		return flag == SF ? top_bit(q, r, w) : Z3_mk_false(q->z);
	case RECORD_BIT:
		return Z3_mk_eq(
			q->z,
			Z3_mk_extract(q->z, 0, 0, Z3_mk_bvlshr(q->z, q->record[0], q->record[1])),
			bits(q, 1, 1));
	default: return NULL;
	}
}

/* What the state says of flags: that they are those of its record. */
static void record_facts(struct query *q, const struct fay_state *s)
{
	static const struct {
		uint8_t mask, flag;
	} flags[] = { { FLAG_CF, CF }, { FLAG_ZF, ZF }, { FLAG_SF, SF }, { FLAG_OF, OF } };
	unsigned w = s->flags_width;
	Z3_ast a, b;

	if (s->record == RECORD_NONE)
		return;
	for (unsigned i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		Z3_ast f =
			s->flags_covered & flags[i].mask ? flag_formula(q, s, flags[i].flag) : NULL;

		if (f)
			fay_smt_assume(q, Z3_mk_iff(q->z, q->now.flag[flags[i].flag], f));
	}
	if (s->record != RECORD_COMPARE && s->record != RECORD_LOGIC)
		return;
	if (!fay_value_numeric(&s->loc[LOC_FLAGS_A]) || !fay_value_numeric(&s->loc[LOC_FLAGS_B]) ||
	    !fay_value_numeric(&s->loc[LOC_FLAGS_R]))
		return;
	a = low_bits(q, q->record[0], w);
	b = low_bits(q, q->record[1], w);
	a = s->record == RECORD_COMPARE ? Z3_mk_bvsub(q->z, a, b) : Z3_mk_bvand(q->z, a, b);
	fay_smt_assume(q, Z3_mk_eq(q->z, q->record[2], zero_extend(q, a, w, 64)));
}

struct record {
	Z3_ast a, b;
};

/* The operands of a flag-setting instruction, before it. */
static struct record record_before(struct query *q, const struct fay_insn *insn)
{
	unsigned w = insn->width;
	struct record r = { 0 };

	switch (insn->op) {
	case OP_INC:
	case OP_DEC: r.b = bits(q, 1, w); break;
	case OP_ADD:
	case OP_SUB:
	case OP_CMP:
	case OP_TEST:
	case OP_AND:
	case OP_OR:
	case OP_XOR: r.b = fay_smt_read(q, &insn->src, w); break;
	case OP_BT:
		r.b = Z3_mk_bvand(q->z, fay_smt_read(q, &insn->src, w), bits(q, w - 1, w));
		break;
	case OP_NEG:
		r.b = fay_smt_read(q, &insn->dst, w);
		r.a = bits(q, 0, w);
		return r;
	case OP_POPCNT: r.a = fay_smt_read(q, &insn->src, w); return r;
	default: return r;
	}
	r.a = fay_smt_read(q, &insn->dst, w);
	if (insn->op == OP_ADD || insn->op == OP_INC) /* a + b is recorded as a - (-b) */
		r.b = Z3_mk_bvneg(q->z, r.b);
	return r;
}

static void record_after(struct query *q, const struct fay_insn *insn, struct record before)
{
	const struct fay_op_info *info = &fay_op_table[insn->op];
	unsigned w = insn->width;
	Z3_ast r = NULL;

	if (!info->flags_written && !info->flags_undefined)
		return;
	if (insn->op == OP_CMP)
		r = Z3_mk_bvsub(q->z, before.a, before.b);
	else if (insn->op == OP_TEST)
		r = Z3_mk_bvand(q->z, before.a, before.b);
	else if (insn->op == OP_POPCNT)
		r = before.a;
	else if (insn->dst.kind == OPERAND_MEM)
		r = q->stored;
	else if (insn->dst.kind == OPERAND_REG)
		r = low_bits(q, q->now.reg[insn->dst.reg], w);
	q->record[0] = before.a ? zero_extend(q, before.a, w, 64) : fresh_bits(q, 64);
	q->record[1] = before.b ? zero_extend(q, before.b, w, 64) : fresh_bits(q, 64);
	q->record[2] = r ? zero_extend(q, r, w, 64) : fresh_bits(q, 64);
}

/* ---- states ---- */

static void assume_all(struct proof *p, const struct fay_state *s)
{
	struct query *q = p->q;

	for (unsigned i = 0; i < 3; i++)
		q->record[i] = fresh_bits(q, 64);
	fay_smt_fresh_state(q, s);
	record_facts(q, s);
	fay_kinds_fresh(&p->kinds, q, s->count - LOC_SLOTS);
	fay_kinds_assume(&p->kinds, q, s);
	p->kinds.undefined = s->flags_undefined;
}

/* What state s says, of the terms as they are now, as one formula. */
static Z3_ast claim_all(struct proof *p, const struct fay_state *s)
{
	struct query *q = p->q;
	unsigned before = q->fact_count;
	Z3_ast all;

	if (p->kinds.slots != s->count - LOC_SLOTS)
		return Z3_mk_false(q->z);
	fay_smt_assume_state(q, s);
	record_facts(q, s);
	fay_kinds_assume(&p->kinds, q, s);
	fay_smt_assume(q,
		       Z3_mk_eq(q->z, bits(q, p->kinds.undefined & (uint8_t)~s->flags_undefined, 8),
				bits(q, 0, 8)));
	all = Z3_mk_and(q->z, q->fact_count - before, q->facts + before);
	q->fact_count = before;
	return all;
}

/* ---- one node ---- */

static uint64_t node_address(const struct fay_analysis *an, uint32_t node)
{
	return an->cfg->insns[an->cfg->blocks[an->graph->nodes[node].block].first].address;
}

/* The edge to `to`, taken if c. */
static void edge(struct proof *p, uint32_t to, Z3_ast c)
{
	struct query *q = p->q;
	struct fay_analysis *an = q->an;
	const struct fay_insn *insn = &an->cfg->insns[an->insn];
	char what[96];

	if (to == FAY_NONE)
		return;
	if (!an->in[to]) {
		snprintf(what, sizeof(what), "the edge to .text+0x%llx is never taken",
			 (unsigned long long)(node_address(an, to) - an->image->text.start));
		fay_smt2_put(p->out, q, "UNREACHABLE", insn->address, what, c, "unsat");
		return;
	}
	snprintf(what, sizeof(what), "the invariant of .text+0x%llx holds on this edge",
		 (unsigned long long)(node_address(an, to) - an->image->text.start));
	fay_smt2_put(p->out, q, "INVARIANT", insn->address, what,
		     both(q, c, negate(q, claim_all(p, an->in[to]))), "unsat");
}

static void edges(struct proof *p, uint32_t node)
{
	struct query *q = p->q;
	const struct fay_node *n = &q->an->graph->nodes[node];
	Z3_ast c = Z3_mk_true(q->z);
	enum fay_cc cc;

	if (!fay_node_branches(q->an, node, &cc)) {
		for (uint32_t k = 0; k < (n->table ? n->table_count : 1); k++)
			edge(p, fay_node_succ(n, k), c);
		return;
	}
	/* A mispredicted branch goes either way whatever its condition. */
	edge(p, n->succ[0], q->an->refine ? fay_smt_condition(q, cc) : c);
	edge(p, n->succ[1], q->an->refine ? negate(q, fay_smt_condition(q, cc)) : c);
}

/* The stack pointer as instructions other than push, pop, call and ret left it. */
static void stack_pointer(struct proof *p, const struct fay_insn *insn)
{
	struct query *q = p->q;
	int64_t depth = fay_state_depth(q->an->current);

	if (insn->dst.kind != OPERAND_REG || insn->dst.reg != FAY_RSP ||
	    !fay_op_table[insn->op].dst_written || insn->op == OP_POP)
		return;
	fay_proof_claim(p, FAY_RULE_STK_POINTER, insn,
			"the stack pointer is a constant distance from its value at entry",
			both(q, Z3_mk_eq(q->z, q->now.reg[FAY_RSP], bits(q, (uint64_t)-depth, 64)),
			     fay_kinds_is(q, p->kinds.reg[FAY_RSP], TAG_POINTER + REGION_STACK)));
}

/* False: the path ends here. */
static bool step(struct proof *p, uint32_t node, uint32_t index)
{
	struct query *q = p->q;
	struct fay_analysis *an = q->an;
	const struct fay_insn *insn = &an->cfg->insns[index];
	struct record before;

	an->node = node;
	an->insn = index;
	q->loaded_mem = NULL;
	fay_proof_obligations(p, insn);
	before = record_before(q, insn);
	fay_kinds_step(&p->kinds, q, insn);
	fay_smt_step(q, insn);
	record_after(q, insn, before);
	if (!fay_transfer_step(an, node, index)) {
		if (!fay_proof_pending(p, index, GOAL_UNREACHABLE) &&
		    an->refusal.rule == FAY_RULE_NONE)
			fay_smt2_put(p->out, q, "UNREACHABLE", insn->address,
				     "no execution comes here", Z3_mk_true(q->z), "unsat");
		return false;
	}
	stack_pointer(p, insn);
	fay_smt_after(q, insn);
	fay_kinds_opaque(&p->kinds, q, insn, an->current);
	if (insn->op == OP_REP_MOVS || insn->op == OP_REP_STOS)
		fay_smt_assume_state(q, an->current); /* stated as such in the index */
	fay_kinds_depth(&p->kinds, q, an->current->count - LOC_SLOTS);
	p->kinds.reg[FAY_RSP] =
		(struct kind){ bits(q, TAG_POINTER + REGION_STACK, 32), bits(q, 0, 8) };
	if (insn->op == OP_LFENCE && an->architectural)
		/* nothing mispredicted runs past it: the state of the first proof */
		assume_all(p, an->current);
	return true;
}

bool fay_proof_begin(struct proof *p, struct fay_analysis *an, struct fay_smt2 *out, uint32_t node)
{
	*p = (struct proof){ .out = out, .q = fay_smt_query_create(an) };
	if (!p->q || !fay_kinds_init(&p->kinds))
		return false;
	p->q->local = p->q->exact = true;
	p->q->now.condition = Z3_mk_true(p->q->z);
	if (node == FAY_NONE)
		return true;
	an->node = node;
	an->insn = an->cfg->blocks[an->graph->nodes[node].block].first;
	assume_all(p, an->in[node]);
	fay_state_copy(an->current, an->in[node]);
	return true;
}

void fay_proof_end(struct proof *p)
{
	fay_kinds_deinit(&p->kinds);
	fay_smt_query_destroy(p->q);
}

bool fay_proof_block(struct proof *p, uint32_t node)
{
	const struct fay_block *block = &p->q->an->cfg->blocks[p->q->an->graph->nodes[node].block];

	for (uint32_t i = 0; i < block->count; i++)
		if (p->q->failed || !step(p, node, block->first + i))
			return false;
	return true;
}

static void prove_node(struct proof *p, uint32_t node)
{
	if (fay_proof_block(p, node))
		edges(p, node);
}

/* The convention of fay/event.h implies the first invariant. */
static void prove_entry(struct proof *p)
{
	struct query *q = p->q;

	fay_state_entry(q->an->current);
	assume_all(p, q->an->current);
	fay_smt2_put(p->out, q, "ENTRY", node_address(q->an, 0),
		     "the calling convention implies the first invariant",
		     negate(q, claim_all(p, q->an->in[0])), "unsat");
}

/* ---- one probe ---- */

static void unstated(struct fay_smt2 *out, bool confined)
{
	fay_smt2_unstated(out, "DEC-* INS-* CFI-TARGET CFI-OVERLAP CFI-END",
			  "the instructions and direct jumps are what was decoded",
			  "a property of the bytes, not of states: three decoders agree, every "
			  "target is a decoded start");
	fay_smt2_unstated(out, "STK-LIMIT POL-*",
			  "stack, instructions and state are within the limits",
			  "comparisons of constants of the report");
	fay_smt2_unstated(out, "TRM-LOOP", "the worst case of the whole probe",
			  "the longest path over the loop nest with the loops' bounds as factors");
	fay_smt2_unstated(out, "MEM-UNINIT MEM-ALIGN",
			  "bytes of vector registers, alignment of vector accesses",
			  "numbers and bytes of vector registers are followed by the analysis "
			  "alone: what leaves one is a fresh unknown within its bounds");
	fay_smt2_unstated(out, "MEM-UNINIT MEM-LEAK",
			  "the elements that rep movs and rep stos write",
			  "followed one by one by the analysis alone, whose state after them is "
			  "assumed; bounds are in files");
	if (confined)
		fay_smt2_unstated(out, "SPC-BRANCH", "what runs past an lfence",
				  "the architectural states, which the first set of files proves, "
				  "are assumed there");
}

bool fay_proof_write(struct fay_analysis *an, struct fay_smt2 *out)
{
	bool checking = an->checking, ok = true;

	an->checking = false;
	for (uint32_t node = 0;
	     ok && node <= an->graph->node_count && !out->error && !out->truncated; node++) {
		bool entry = node == an->graph->node_count;
		struct proof p;

		if (!entry && !an->in[node])
			continue;
		ok = fay_proof_begin(&p, an, out, entry ? FAY_NONE : node);
		if (ok && entry)
			prove_entry(&p);
		else if (ok)
			prove_node(&p, node);
		ok = ok && !p.q->failed && Z3_get_error_code(p.q->z) == Z3_OK &&
		     an->refusal.rule == FAY_RULE_NONE;
		fay_proof_end(&p);
	}
	/* Termination is proved once; a mispredicted run ends with the misprediction. */
	if (ok && an->refine)
		ok = fay_proof_loops(an, out);
	an->checking = checking;
	unstated(out, an->policy->speculation_confined);
	return ok;
}
