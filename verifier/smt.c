/* SPDX-License-Identifier: MIT */
/*
 * What the abstract values cannot prove is asked of Z3, as a query over bit vectors.
 *
 * The query covers the acyclic piece of the probe's graph from a cut point to the obligation: the head of the innermost loop around
 * it, or the probe's entry. At the cut point, and at the heads of other loops on the way, registers and stack slots are fresh unknowns of which
 * only the invariant of the fixpoint is assumed; so an answer "unsatisfiable" is a proof for every iteration (induction with the
 * invariant as hypothesis). Paths are merged with if-then-else, each guarded by its path condition.
 *
 * A pointer is represented by its offset in its region: the abstract pass, which runs in step, has refused everything that would
 * tell addresses apart from offsets. Memory other than the own stack, the event and read-only data is an unknown at every read.
 * Whatever is not modelled is an unknown too, so that mistakes of omission cost proofs and not soundness.
 */
#include "smt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <z3.h>

#define MAX_REGION_NODES 1024u
#define MAX_REGION_INSNS 20000u
#define MAX_UNKNOWNS (1u << 18)     /* of one query: Z3 keeps about 2 KiB for each */
#define MAX_TABLE_TERMS (1u << 20)  /* entries of read-only tables spelt out in one query */
#define RLIMIT 20000000u /* Z3's own measure of work */

enum { CF, ZF, SF, OF, PF, FLAGS };

struct sym {
	Z3_ast condition; /* this node is reached; NULL not yet */
	Z3_ast reg[16];
	Z3_ast flag[FLAGS];
	uint32_t slots;   /* 4-byte stack slots */
	Z3_ast *slot;
};

struct query {
	struct fay_analysis *an;
	const struct fay_obligation *o;
	Z3_context z;
	Z3_solver solver;
	uint32_t cut, target;
	uint32_t *nodes;      /* of the region, ascending */
	uint32_t node_count;
	uint32_t *position;   /* node -> 1 + index in nodes, for cut..target */
	struct sym *entry;    /* per node of the region */
	struct sym now;
	Z3_ast now_slots[FAY_STACK_HARD / 4];
	Z3_ast event[16];
	Z3_ast start[16];     /* registers at the cut */
	Z3_ast *facts;
	unsigned fact_count, fact_capacity;
	unsigned fresh_count, table_terms;
	bool inner_cut, failed;
	struct { uint32_t node, insn; unsigned size; Z3_ast var; } loads[FAY_MODEL_LOADS];
	unsigned load_count;
};

static void on_error(Z3_context z, Z3_error_code code)
{
	(void)z;
	(void)code; /* looked at with Z3_get_error_code */
}

/* ---- terms ---- */

static Z3_ast bits(struct query *q, uint64_t value, unsigned width)
{
	return Z3_mk_unsigned_int64(q->z, width >= 64 ? value : value & (((uint64_t)1 << width) - 1), Z3_mk_bv_sort(q->z, width));
}

static Z3_ast fresh_bits(struct query *q, unsigned width)
{
	char name[24];

	snprintf(name, sizeof(name), "u%u", q->fresh_count++);
	return Z3_mk_const(q->z, Z3_mk_string_symbol(q->z, name), Z3_mk_bv_sort(q->z, width));
}

static Z3_ast fresh_bool(struct query *q)
{
	char name[24];

	snprintf(name, sizeof(name), "b%u", q->fresh_count++);
	return Z3_mk_const(q->z, Z3_mk_string_symbol(q->z, name), Z3_mk_bool_sort(q->z));
}

static Z3_ast both(struct query *q, Z3_ast a, Z3_ast b)
{
	Z3_ast args[2] = { a, b };

	return Z3_mk_and(q->z, 2, args);
}

static Z3_ast either(struct query *q, Z3_ast a, Z3_ast b)
{
	Z3_ast args[2] = { a, b };

	return Z3_mk_or(q->z, 2, args);
}

static Z3_ast negate(struct query *q, Z3_ast a) { return Z3_mk_not(q->z, a); }
static Z3_ast low_bits(struct query *q, Z3_ast a, unsigned width) { return width >= 64 ? a : Z3_mk_extract(q->z, width - 1, 0, a); }
static Z3_ast zero_extend(struct query *q, Z3_ast a, unsigned from, unsigned to) { return from >= to ? a : Z3_mk_zero_ext(q->z, to - from, a); }
static Z3_ast sign_extend(struct query *q, Z3_ast a, unsigned from, unsigned to) { return from >= to ? a : Z3_mk_sign_ext(q->z, to - from, a); }
static Z3_ast top_bit(struct query *q, Z3_ast a, unsigned width)
{
	return Z3_mk_eq(q->z, Z3_mk_extract(q->z, width - 1, width - 1, a), bits(q, 1, 1));
}

static void assume(struct query *q, Z3_ast fact)
{
	if (q->fact_count == q->fact_capacity) {
		unsigned capacity = q->fact_capacity ? 2 * q->fact_capacity : 64;
		void *grown = realloc(q->facts, capacity * sizeof(*q->facts));

		if (!grown) {
			q->failed = true; /* fewer facts are sound, but say so */
			return;
		}
		q->facts = grown;
		q->fact_capacity = capacity;
	}
	q->facts[q->fact_count++] = fact;
}

/* ---- the invariant as assumptions ---- */

/*
 * Holds on the ways that come here. Elsewhere it may not: the invariant of a place that no execution reaches can contradict itself, and
 * assumed outright it would prove anything of the ways around that place.
 */
static void assume_here(struct query *q, Z3_ast fact) { assume(q, Z3_mk_implies(q->z, q->now.condition, fact)); }

static void assume_scalar(struct query *q, Z3_ast v, const struct fay_scalar *s)
{
	if (fay_scalar_is_const(s)) {
		assume_here(q, Z3_mk_eq(q->z, v, bits(q, s->umin, 64)));
		return;
	}
	if (s->umin)
		assume_here(q, Z3_mk_bvuge(q->z, v, bits(q, s->umin, 64)));
	if (s->umax != UINT64_MAX)
		assume_here(q, Z3_mk_bvule(q->z, v, bits(q, s->umax, 64)));
	if (s->smin != INT64_MIN && s->smin < 0)
		assume_here(q, Z3_mk_bvsge(q->z, v, bits(q, (uint64_t)s->smin, 64)));
	if (s->smax != INT64_MAX && s->smin < 0)
		assume_here(q, Z3_mk_bvsle(q->z, v, bits(q, (uint64_t)s->smax, 64)));
	if (s->unknown != UINT64_MAX)
		assume_here(q, Z3_mk_eq(q->z, Z3_mk_bvand(q->z, v, bits(q, ~s->unknown, 64)), bits(q, s->value, 64)));
	if (s->modulus > 1)
		assume_here(q, Z3_mk_eq(q->z, Z3_mk_bvsmod(q->z, v, bits(q, s->modulus, 64)), bits(q, s->remainder, 64)));
}

/* Location i of a stored state as a 64-bit term; NULL if it holds no number. */
static Z3_ast location(struct query *q, const struct fay_state *s, uint32_t i)
{
	const struct fay_value *v = &s->loc[i];

	if (!fay_value_numeric(v) || v->init != 0xff || (i >= LOC_FLAGS_A && i <= LOC_FLAGS_R))
		return NULL;
	if (i < 16)
		return q->now.reg[i];
	if (v->size == 4)
		return zero_extend(q, q->now.slot[i - LOC_SLOTS], 32, 64);
	return i > LOC_SLOTS ? Z3_mk_concat(q->z, q->now.slot[i - LOC_SLOTS - 1], q->now.slot[i - LOC_SLOTS]) : NULL;
}

static void assume_state(struct query *q, const struct fay_state *s)
{
	for (uint32_t i = 0; i < s->count; i++) {
		Z3_ast v = location(q, s, i), leader;

		if (!v)
			continue;
		assume_scalar(q, v, &s->loc[i].s);
		if (!s->loc[i].id || s->loc[i].id - 1 >= i)
			continue;
		leader = location(q, s, s->loc[i].id - 1);
		if (leader)
			assume_here(q, Z3_mk_eq(q->z, v, Z3_mk_bvadd(q->z, leader, bits(q, s->loc[i].delta, 64))));
	}
}

static void fresh_state(struct query *q, const struct fay_state *s)
{
	for (unsigned r = 0; r < 16; r++)
		q->now.reg[r] = fresh_bits(q, 64);
	for (unsigned f = 0; f < FLAGS; f++)
		q->now.flag[f] = fresh_bool(q);
	q->now.slots = s->count - LOC_SLOTS;
	for (uint32_t i = 0; i < q->now.slots; i++)
		q->now.slot[i] = fresh_bits(q, 32);
	assume_state(q, s);
}

/* ---- memory ---- */

static uint32_t slot_index(int64_t offset) { return (uint32_t)(-(offset & ~(int64_t)3) / 4) - 1; }

static bool slot_inside(const struct query *q, int64_t offset, unsigned size)
{
	return offset >= -4 * (int64_t)q->now.slots && offset <= -(int64_t)size;
}

static Z3_ast stack_byte(struct query *q, int64_t offset)
{
	unsigned byte = (unsigned)(offset & 3);

	return Z3_mk_extract(q->z, 8 * byte + 7, 8 * byte, q->now.slot[slot_index(offset)]);
}

static Z3_ast stack_load(struct query *q, int64_t offset, unsigned size)
{
	Z3_ast r;

	if (!slot_inside(q, offset, size))
		return fresh_bits(q, 8 * size);
	if (!(offset & 3) && size == 4)
		return q->now.slot[slot_index(offset)];
	if (!(offset & 3) && size == 8)
		return Z3_mk_concat(q->z, q->now.slot[slot_index(offset + 4)], q->now.slot[slot_index(offset)]);
	r = stack_byte(q, offset);
	for (unsigned i = 1; i < size; i++)
		r = Z3_mk_concat(q->z, stack_byte(q, offset + i), r);
	return r;
}

static void stack_store_byte(struct query *q, int64_t offset, Z3_ast byte)
{
	Z3_ast *slot = &q->now.slot[slot_index(offset)], r = NULL;

	for (unsigned k = 4; k-- > 0;) {
		Z3_ast part = k == (unsigned)(offset & 3) ? byte : Z3_mk_extract(q->z, 8 * k + 7, 8 * k, *slot);

		r = r ? Z3_mk_concat(q->z, r, part) : part;
	}
	*slot = r;
}

static void stack_store(struct query *q, int64_t offset, unsigned size, Z3_ast value)
{
	if (!slot_inside(q, offset, size))
		return;
	if (!(offset & 3) && size >= 4) {
		q->now.slot[slot_index(offset)] = Z3_mk_extract(q->z, 31, 0, value);
		if (size == 8)
			q->now.slot[slot_index(offset + 4)] = Z3_mk_extract(q->z, 63, 32, value);
		return;
	}
	for (unsigned i = 0; i < size; i++)
		stack_store_byte(q, offset + i, Z3_mk_extract(q->z, 8 * i + 7, 8 * i, value));
}

static void stack_forget(struct query *q, int64_t low, int64_t high)
{
	int64_t bottom = -4 * (int64_t)q->now.slots;

	if (low < bottom)
		low = bottom;
	if (high > 0)
		high = 0;
	for (int64_t o = low & ~(int64_t)3; o < high; o += 4)
		if (slot_inside(q, o, 4))
			q->now.slot[slot_index(o)] = fresh_bits(q, 32);
}

static Z3_ast event_load(struct query *q, int64_t offset, unsigned size)
{
	Z3_ast r = NULL;

	for (unsigned i = 0; i < size; i++) {
		unsigned at = (unsigned)offset + i;
		Z3_ast byte = Z3_mk_extract(q->z, 8 * (at & 7) + 7, 8 * (at & 7), q->event[at / 8]);

		r = r ? Z3_mk_concat(q->z, byte, r) : byte;
	}
	return r;
}

static uint64_t rodata_at(const struct query *q, uint64_t offset, unsigned size)
{
	const struct fay_image *image = q->an->image;
	uint64_t number = 0;

	memcpy(&number, image->layout.bytes + (image->rodata.start - image->layout_base) + offset, size);
	return number;
}

static Z3_ast address_term(struct query *q, const struct fay_operand *mem)
{
	Z3_ast r;

	if (mem->rip)
		return bits(q, (uint64_t)mem->disp - q->an->image->rodata.start, 64);
	r = bits(q, (uint64_t)mem->disp, 64);
	if (mem->base != FAY_NO_REG)
		r = Z3_mk_bvadd(q->z, q->now.reg[mem->base], r);
	if (mem->index != FAY_NO_REG)
		r = Z3_mk_bvadd(q->z, r, Z3_mk_bvmul(q->z, q->now.reg[mem->index], bits(q, mem->scale, 64)));
	return r;
}

#define TABLE_ENTRIES 256

static Z3_ast load(struct query *q, const struct fay_operand *mem, unsigned size)
{
	struct fay_value at;
	Z3_ast r, address;

	if (!fay_transfer_address(q->an, mem, &at))
		return fresh_bits(q, 8 * size);
	if (at.tag == REGION_STACK)
		return fay_scalar_is_const(&at.s) ? stack_load(q, at.s.smin, size) : fresh_bits(q, 8 * size);
	if (at.tag == REGION_EVENT && fay_scalar_is_const(&at.s) && at.s.smin >= 0 && at.s.smin + size <= 128)
		return event_load(q, at.s.smin, size);
	if (at.tag == REGION_RODATA && at.s.smin >= 0 && (uint64_t)at.s.smax + size <= q->an->image->rodata.size &&
	    at.s.smax - at.s.smin < TABLE_ENTRIES) {
		q->table_terms += (unsigned)(at.s.smax - at.s.smin);
		address = address_term(q, mem);
		r = bits(q, rodata_at(q, (uint64_t)at.s.smax, size), 8 * size);
		for (int64_t o = at.s.smin; o < at.s.smax; o++)
			if (fay_scalar_contains(&at.s, (uint64_t)o))
				r = Z3_mk_ite(q->z, Z3_mk_eq(q->z, address, bits(q, (uint64_t)o, 64)), bits(q, rodata_at(q, (uint64_t)o, size), 8 * size), r);
		return r;
	}
	r = fresh_bits(q, 8 * size);
	if (q->load_count < FAY_MODEL_LOADS) {
		q->loads[q->load_count].node = q->an->node;
		q->loads[q->load_count].insn = q->an->insn;
		q->loads[q->load_count].size = size;
		q->loads[q->load_count++].var = r;
	}
	return r;
}

static void store(struct query *q, const struct fay_operand *mem, unsigned size, Z3_ast value)
{
	struct fay_value at;

	if (!fay_transfer_address(q->an, mem, &at) || at.tag != REGION_STACK)
		return;
	if (fay_scalar_is_const(&at.s))
		stack_store(q, at.s.smin, size, value);
	else
		stack_forget(q, at.s.smin, at.s.smax < 0 ? at.s.smax + size : 0);
}

static Z3_ast read(struct query *q, const struct fay_operand *operand, unsigned width)
{
	switch (operand->kind) {
	case OPERAND_REG:
		return low_bits(q, q->now.reg[operand->reg], width);
	case OPERAND_IMM:
		return bits(q, (uint64_t)operand->imm, width);
	case OPERAND_MEM:
		return load(q, operand, width / 8);
	default:
		return fresh_bits(q, width);
	}
}

static void write_reg(struct query *q, unsigned reg, unsigned width, Z3_ast value)
{
	if (width == 64)
		q->now.reg[reg] = value;
	else if (width == 32)
		q->now.reg[reg] = Z3_mk_zero_ext(q->z, 32, value);
	else
		q->now.reg[reg] = Z3_mk_concat(q->z, Z3_mk_extract(q->z, 63, width, q->now.reg[reg]), value);
}

static void write(struct query *q, const struct fay_operand *operand, unsigned width, Z3_ast value)
{
	if (operand->kind == OPERAND_REG)
		write_reg(q, operand->reg, width, value);
	else if (operand->kind == OPERAND_MEM)
		store(q, operand, width / 8, value);
}

/* ---- flags and conditions ---- */

static void forget_flags(struct query *q)
{
	for (unsigned f = 0; f < FLAGS; f++)
		q->now.flag[f] = fresh_bool(q);
}

static void result_flags(struct query *q, Z3_ast r, unsigned width)
{
	q->now.flag[ZF] = Z3_mk_eq(q->z, r, bits(q, 0, width));
	q->now.flag[SF] = top_bit(q, r, width);
	q->now.flag[PF] = fresh_bool(q);
}

/* a + b + carry, or a - b - carry, with flags; carry is a 1-bit vector. */
static Z3_ast sum(struct query *q, Z3_ast a, Z3_ast b, Z3_ast carry, bool minus, unsigned width)
{
	Z3_ast wa = Z3_mk_zero_ext(q->z, 1, a), wb = Z3_mk_zero_ext(q->z, 1, b), wc = Z3_mk_zero_ext(q->z, width, carry);
	Z3_ast w = minus ? Z3_mk_bvsub(q->z, Z3_mk_bvsub(q->z, wa, wb), wc) : Z3_mk_bvadd(q->z, Z3_mk_bvadd(q->z, wa, wb), wc);
	Z3_ast r = Z3_mk_extract(q->z, width - 1, 0, w), same = Z3_mk_bvxor(q->z, a, b);

	q->now.flag[CF] = top_bit(q, w, width + 1);
	if (!minus)
		same = Z3_mk_bvnot(q->z, same);
	q->now.flag[OF] = top_bit(q, Z3_mk_bvand(q->z, same, Z3_mk_bvxor(q->z, a, r)), width);
	result_flags(q, r, width);
	return r;
}

static Z3_ast condition(struct query *q, enum fay_cc cc)
{
	const Z3_ast *f = q->now.flag;
	Z3_ast r;

	switch (cc & ~1) {
	case CC_O: r = f[OF]; break;
	case CC_B: r = f[CF]; break;
	case CC_E: r = f[ZF]; break;
	case CC_BE: r = either(q, f[CF], f[ZF]); break;
	case CC_S: r = f[SF]; break;
	case CC_P: r = f[PF]; break;
	case CC_L: r = Z3_mk_xor(q->z, f[SF], f[OF]); break;
	default: r = either(q, f[ZF], Z3_mk_xor(q->z, f[SF], f[OF])); break;
	}
	return cc & 1 ? negate(q, r) : r;
}

/* ---- instructions ---- */

static Z3_ast no_carry(struct query *q) { return bits(q, 0, 1); }

static void step_alu(struct query *q, const struct fay_insn *insn)
{
	unsigned w = insn->width;
	bool same = insn->dst.kind == OPERAND_REG && insn->src.kind == OPERAND_REG && insn->dst.reg == insn->src.reg;
	Z3_ast a = read(q, &insn->dst, w), r = NULL, old_cf = q->now.flag[CF];
	Z3_ast b = insn->op == OP_INC || insn->op == OP_DEC ? bits(q, 1, w) : same ? a : read(q, &insn->src, w);

	switch (insn->op) {
	case OP_ADD: case OP_INC:
		r = sum(q, a, b, no_carry(q), false, w);
		break;
	case OP_SUB: case OP_CMP: case OP_DEC:
		r = sum(q, a, b, no_carry(q), true, w);
		break;
	case OP_ADC: case OP_SBB:
		r = sum(q, a, b, Z3_mk_ite(q->z, old_cf, bits(q, 1, 1), bits(q, 0, 1)), insn->op == OP_SBB, w);
		break;
	case OP_AND: case OP_TEST: r = Z3_mk_bvand(q->z, a, b); break;
	case OP_OR: r = Z3_mk_bvor(q->z, a, b); break;
	default: r = Z3_mk_bvxor(q->z, a, b); break;
	}
	if (insn->op == OP_AND || insn->op == OP_TEST || insn->op == OP_OR || insn->op == OP_XOR) {
		result_flags(q, r, w);
		q->now.flag[CF] = q->now.flag[OF] = Z3_mk_false(q->z);
	}
	if (insn->op == OP_INC || insn->op == OP_DEC)
		q->now.flag[CF] = old_cf;
	if (insn->op != OP_CMP && insn->op != OP_TEST)
		write(q, &insn->dst, w, r);
}

static void step_shift(struct query *q, const struct fay_insn *insn)
{
	unsigned w = insn->width, mask = w == 64 ? 63 : 31;
	Z3_ast a = read(q, &insn->dst, w), count, r;

	if (insn->op == OP_ROL || insn->op == OP_ROR || insn->op == OP_SHLD || insn->op == OP_SHRD) {
		forget_flags(q);
		write(q, &insn->dst, w, fresh_bits(q, w));
		return;
	}
	if (insn->src.kind == OPERAND_IMM) {
		if (!(insn->src.imm & mask)) {
			write(q, &insn->dst, w, a);
			return;
		}
		count = bits(q, (uint64_t)insn->src.imm & mask, w);
	} else {
		/* Widths 8 and 16 may shift by more than their width: the count keeps its 5 bits. */
		Z3_ast c = Z3_mk_bvand(q->z, read(q, &insn->src, 8), bits(q, mask, 8));

		count = w > 8 ? Z3_mk_zero_ext(q->z, w - 8, c) : c;
	}
	r = insn->op == OP_SHL ? Z3_mk_bvshl(q->z, a, count) : insn->op == OP_SHR ? Z3_mk_bvlshr(q->z, a, count) : Z3_mk_bvashr(q->z, a, count);
	forget_flags(q);
	if (insn->src.kind == OPERAND_IMM)
		result_flags(q, r, w);
	write(q, &insn->dst, w, r);
}

static void step_wide(struct query *q, const struct fay_insn *insn)
{
	unsigned w = insn->width;
	Z3_ast a = low_bits(q, q->now.reg[FAY_RAX], w), b = read(q, &insn->src, w), p;

	if (insn->op == OP_MUL1)
		p = Z3_mk_bvmul(q->z, Z3_mk_zero_ext(q->z, w, a), Z3_mk_zero_ext(q->z, w, b));
	else
		p = Z3_mk_bvmul(q->z, Z3_mk_sign_ext(q->z, w, a), Z3_mk_sign_ext(q->z, w, b));
	write_reg(q, FAY_RAX, w, Z3_mk_extract(q->z, w - 1, 0, p));
	write_reg(q, FAY_RDX, w, Z3_mk_extract(q->z, 2 * w - 1, w, p));
	forget_flags(q);
}

/* Division is followed only where the upper half is known to be zero; else the results are unknown. */
static void step_divide(struct query *q, const struct fay_insn *insn)
{
	unsigned w = insn->width;
	Z3_ast low = low_bits(q, q->now.reg[FAY_RAX], w), d = read(q, &insn->src, w);
	const struct fay_value *rdx = &q->an->current->loc[FAY_RDX];
	bool simple = insn->op == OP_DIV && rdx->kind == KIND_SCALAR && fay_scalar_is_const(&rdx->s) && rdx->s.umin == 0;

	write_reg(q, FAY_RAX, w, simple ? Z3_mk_bvudiv(q->z, low, d) : fresh_bits(q, w));
	write_reg(q, FAY_RDX, w, simple ? Z3_mk_bvurem(q->z, low, d) : fresh_bits(q, w));
	forget_flags(q);
}

static void step_helper(struct query *q)
{
	static const uint8_t clobbered[] = { FAY_RAX, FAY_RCX, FAY_RDX, FAY_RSI, FAY_RDI, FAY_R8, FAY_R9, FAY_R10, FAY_R11 };

	for (unsigned i = 0; i < sizeof(clobbered); i++)
		q->now.reg[clobbered[i]] = fresh_bits(q, 64);
	forget_flags(q);
	for (uint32_t i = 0; i < q->now.slots; i++)
		q->now.slot[i] = fresh_bits(q, 32);
}

/* The stack pointer and the depth are the abstract state's. */
static void set_depth(struct query *q, uint32_t slots)
{
	for (uint32_t i = q->now.slots; i < slots; i++)
		q->now.slot[i] = fresh_bits(q, 32);
	q->now.slots = slots;
}

static void step_push(struct query *q, const struct fay_insn *insn)
{
	int64_t depth = fay_state_depth(q->an->current) + 8;
	Z3_ast v = insn->op == OP_CALL ? fresh_bits(q, 64) : read(q, &insn->src, 64);

	if (depth > (int64_t)FAY_STACK_HARD)
		return;
	set_depth(q, (uint32_t)(depth / 4));
	stack_store(q, -depth, 8, v);
}

static void step_one(struct query *q, const struct fay_insn *insn)
{
	unsigned w = insn->width;
	Z3_ast a, b;

	switch (insn->op) {
	case OP_NOP: case OP_LFENCE: case OP_JMP: case OP_JCC: case OP_RET:
		return;
	case OP_MOV:
		write(q, &insn->dst, w, read(q, &insn->src, w));
		return;
	case OP_MOVZX:
		write(q, &insn->dst, w, zero_extend(q, read(q, &insn->src, insn->src_width), insn->src_width, w));
		return;
	case OP_MOVSX:
		write(q, &insn->dst, w, sign_extend(q, read(q, &insn->src, insn->src_width), insn->src_width, w));
		return;
	case OP_LEA:
		write(q, &insn->dst, w, low_bits(q, address_term(q, &insn->src), w));
		return;
	case OP_ADD: case OP_SUB: case OP_AND: case OP_OR: case OP_XOR: case OP_ADC: case OP_SBB: case OP_CMP: case OP_TEST:
	case OP_INC: case OP_DEC:
		step_alu(q, insn);
		return;
	case OP_NOT:
		write(q, &insn->dst, w, Z3_mk_bvnot(q->z, read(q, &insn->dst, w)));
		return;
	case OP_NEG:
		write(q, &insn->dst, w, sum(q, bits(q, 0, w), read(q, &insn->dst, w), no_carry(q), true, w));
		return;
	case OP_SHL: case OP_SHR: case OP_SAR: case OP_ROL: case OP_ROR: case OP_SHLD: case OP_SHRD:
		step_shift(q, insn);
		return;
	case OP_IMUL:
		a = Z3_mk_bvmul(q->z, read(q, &insn->src, w), read(q, &insn->src2, w));
		forget_flags(q);
		write(q, &insn->dst, w, a);
		return;
	case OP_MUL1: case OP_IMUL1:
		step_wide(q, insn);
		return;
	case OP_DIV: case OP_IDIV:
		step_divide(q, insn);
		return;
	case OP_CQO:
		a = low_bits(q, q->now.reg[FAY_RAX], w);
		write_reg(q, FAY_RDX, w, Z3_mk_bvashr(q->z, a, bits(q, w - 1, w)));
		return;
	case OP_BT:
		a = read(q, &insn->dst, w);
		b = Z3_mk_bvand(q->z, read(q, &insn->src, w), bits(q, w - 1, w));
		b = Z3_mk_eq(q->z, Z3_mk_extract(q->z, 0, 0, Z3_mk_bvlshr(q->z, a, b)), bits(q, 1, 1));
		a = q->now.flag[ZF];
		forget_flags(q);
		q->now.flag[CF] = b;
		q->now.flag[ZF] = a;
		return;
	case OP_XCHG:
		a = read(q, &insn->dst, w);
		b = read(q, &insn->src, w);
		write(q, &insn->dst, w, b);
		write(q, &insn->src, w, a);
		return;
	case OP_CMOV:
		a = Z3_mk_ite(q->z, condition(q, (enum fay_cc)insn->cc), read(q, &insn->src, w), read(q, &insn->dst, w));
		write(q, &insn->dst, w, a);
		return;
	case OP_SETCC:
		write(q, &insn->dst, 8, Z3_mk_ite(q->z, condition(q, (enum fay_cc)insn->cc), bits(q, 1, 8), bits(q, 0, 8)));
		return;
	case OP_PUSH: case OP_CALL:
		step_push(q, insn);
		return;
	case OP_POP:
		write(q, &insn->dst, 64, stack_load(q, -fay_state_depth(q->an->current), 8));
		return;
	case OP_XADD:
		a = read(q, &insn->dst, w);
		b = sum(q, a, read(q, &insn->src, w), no_carry(q), false, w);
		write(q, &insn->dst, w, b);
		write(q, &insn->src, w, a);
		return;
	case OP_CALL_SLOT:
		step_helper(q);
		return;
	case OP_RDTSC:
		q->now.reg[FAY_RAX] = fresh_bits(q, 64);
		q->now.reg[FAY_RDX] = fresh_bits(q, 64);
		return;
	default:
		/* CMPXCHG, bit counts, byte swaps: what they write is unknown. */
		forget_flags(q);
		if (insn->op == OP_CMPXCHG)
			q->now.reg[FAY_RAX] = fresh_bits(q, 64);
		write(q, &insn->dst, w, fresh_bits(q, w));
	}
}

/* After an instruction: what the abstract state knows, and where terms would say too much. */
static void after(struct query *q, const struct fay_insn *insn)
{
	const struct fay_state *s = q->an->current;

	set_depth(q, s->count - LOC_SLOTS);
	q->now.reg[FAY_RSP] = bits(q, (uint64_t)-fay_state_depth(s), 64);
	/* The order of two pointers is that of their offsets only where the abstract pass says so. */
	if ((insn->op == OP_CMP || insn->op == OP_SUB) && s->loc[LOC_FLAGS_A].kind == KIND_POINTER && !(s->flags_covered & FLAG_CF)) {
		Z3_ast zf = q->now.flag[ZF];

		forget_flags(q);
		q->now.flag[ZF] = zf;
	}
	/* Results that the abstract pass bounds and the terms leave open. */
	if (insn->op == OP_CALL_SLOT || insn->op == OP_BSR || insn->op == OP_BSF || insn->op == OP_TZCNT || insn->op == OP_LZCNT ||
	    insn->op == OP_POPCNT || insn->op == OP_BSWAP || insn->op == OP_RDTSC || insn->op == OP_DIV || insn->op == OP_IDIV) {
		unsigned reg = insn->op == OP_CALL_SLOT || insn->op == OP_RDTSC || insn->op == OP_DIV || insn->op == OP_IDIV ? FAY_RAX
															     : insn->dst.reg;
		if (s->loc[reg].kind == KIND_SCALAR && s->loc[reg].init == 0xff)
			assume(q, Z3_mk_implies(q->z, q->now.condition, Z3_mk_bvule(q->z, q->now.reg[reg], bits(q, s->loc[reg].s.umax, 64))));
	}
}

/* ---- the region ---- */

static uint32_t cut_point(const struct fay_analysis *an, uint32_t target)
{
	uint32_t loop = fay_graph_loop(an->graph, target);

	return loop == FAY_NONE ? 0 : loop;
}

/* All nodes on acyclic ways from the cut to the target. */
static bool find_region(struct query *q)
{
	const struct fay_graph *g = q->an->graph;
	uint32_t span = q->target - q->cut + 1, count = 0, insns = 0;
	uint8_t *in = calloc(span, 1);

	q->position = calloc(span, sizeof(*q->position));
	if (!in || !q->position) {
		free(in);
		return false;
	}
	in[q->target - q->cut] = 1;
	for (uint32_t node = q->target + 1; node-- > q->cut;) {
		const struct fay_node *n = &g->nodes[node];

		if (!in[node - q->cut] || !q->an->in[node])
			continue;
		count++;
		insns += q->an->cfg->blocks[n->block].count;
		for (uint32_t i = 0; node != q->cut && i < n->pred_count; i++) {
			uint32_t from = g->preds[n->first_pred + i];

			if (from < node && from >= q->cut)
				in[from - q->cut] = 1;
		}
	}
	if (count <= MAX_REGION_NODES && insns <= MAX_REGION_INSNS && in[0]) {
		q->nodes = calloc(count, sizeof(*q->nodes));
		q->entry = calloc(count, sizeof(*q->entry));
		for (uint32_t i = 0; q->nodes && i < span; i++)
			if (in[i] && q->an->in[q->cut + i]) {
				q->nodes[q->node_count] = q->cut + i;
				q->position[i] = ++q->node_count;
			}
	}
	free(in);
	return q->nodes && q->entry;
}

static Z3_ast merge(struct query *q, Z3_ast condition_new, Z3_ast value_new, Z3_ast value_old)
{
	return value_new == value_old ? value_old : Z3_mk_ite(q->z, condition_new, value_new, value_old);
}

/* Adds the current terms as one way into `to`, taken if `way`. */
static void flow(struct query *q, uint32_t to, Z3_ast way)
{
	struct sym *s;

	if (to < q->cut || to > q->target || !q->position[to - q->cut] || to == q->cut)
		return;
	s = &q->entry[q->position[to - q->cut] - 1];
	way = both(q, q->now.condition, way);
	if (!s->condition) {
		Z3_ast *slots = calloc(q->now.slots + 1, sizeof(*slots));

		if (!slots) {
			q->failed = true;
			return;
		}
		*s = q->now;
		s->condition = way;
		s->slot = slots;
		memcpy(slots, q->now.slot, q->now.slots * sizeof(*slots));
		return;
	}
	for (unsigned r = 0; r < 16; r++)
		s->reg[r] = merge(q, way, q->now.reg[r], s->reg[r]);
	for (unsigned f = 0; f < FLAGS; f++)
		s->flag[f] = merge(q, way, q->now.flag[f], s->flag[f]);
	for (uint32_t i = 0; i < s->slots && i < q->now.slots; i++)
		s->slot[i] = merge(q, way, q->now.slot[i], s->slot[i]);
	s->condition = either(q, s->condition, way);
}

/* ---- the goal ---- */

static Z3_ast goal(struct query *q, const struct fay_insn *insn)
{
	const struct fay_operand *mem = insn->dst.kind == OPERAND_MEM ? &insn->dst : &insn->src;
	unsigned w = insn->width;
	Z3_ast a, b, c;

	switch (q->o->goal) {
	case GOAL_BOUNDS:
		a = address_term(q, mem);
		return both(q, Z3_mk_bvsge(q->z, a, bits(q, (uint64_t)q->o->low, 64)), Z3_mk_bvsle(q->z, a, bits(q, (uint64_t)q->o->high, 64)));
	case GOAL_DIVIDE:
		a = low_bits(q, q->now.reg[FAY_RAX], w);
		b = low_bits(q, q->now.reg[FAY_RDX], w);
		c = read(q, &insn->src, w);
		if (insn->op == OP_DIV)
			return both(q, negate(q, Z3_mk_eq(q->z, c, bits(q, 0, w))), Z3_mk_bvult(q->z, b, c));
		/* A sign-extended dividend, and neither 0 nor the one overflow: enough, and exact after cqo. */
		return both(q, both(q, Z3_mk_eq(q->z, b, Z3_mk_bvashr(q->z, a, bits(q, w - 1, w))),
				    negate(q, Z3_mk_eq(q->z, c, bits(q, 0, w)))),
			    negate(q, both(q, Z3_mk_eq(q->z, a, bits(q, (uint64_t)1 << (w - 1), w)),
					   Z3_mk_eq(q->z, c, bits(q, UINT64_MAX, w)))));
	case GOAL_DIFFERS:
		return negate(q, Z3_mk_eq(q->z, q->now.reg[q->o->reg], bits(q, (uint64_t)q->o->low, 64)));
	default:
		return Z3_mk_false(q->z);
	}
}

/* Runs one node's block; at the obligation's place adds the negated goal and stops. */
static bool run_node(struct query *q, uint32_t node)
{
	struct fay_analysis *an = q->an;
	const struct fay_node *n = &an->graph->nodes[node];
	const struct fay_block *block = &an->cfg->blocks[n->block];

	fay_state_copy(an->current, an->in[node]);
	for (uint32_t i = 0; i < block->count; i++) {
		const struct fay_insn *insn = &an->cfg->insns[block->first + i];

		an->node = node;
		an->insn = block->first + i;
		if (node == q->target && an->insn == q->o->insn) {
			assume(q, both(q, q->now.condition, negate(q, goal(q, insn))));
			return true;
		}
		step_one(q, insn);
		if (q->fresh_count > MAX_UNKNOWNS || q->table_terms > MAX_TABLE_TERMS) {
			q->failed = true;
			return false;
		}
		if (!fay_transfer_step(an, node, block->first + i))
			return false;
		after(q, insn);
		if (i + 1 < block->count)
			continue;
		if (insn->op == OP_JCC) {
			Z3_ast c = condition(q, (enum fay_cc)insn->cc);

			flow(q, n->succ[0], c);
			flow(q, n->succ[1], negate(q, c));
		} else if (n->succ[0] != FAY_NONE) {
			flow(q, n->succ[0], Z3_mk_true(q->z));
		}
	}
	return false;
}

static bool build(struct query *q)
{
	bool reached = false;

	for (uint32_t i = 0; i < q->node_count && !q->failed; i++) {
		uint32_t node = q->nodes[i];
		struct sym *s = &q->entry[i];

		if (node == q->cut) {
			q->now.condition = Z3_mk_true(q->z);
			fresh_state(q, q->an->in[node]);
			memcpy(q->start, q->now.reg, sizeof(q->start));
		} else if (!s->condition) {
			continue; /* no feasible way in */
		} else if (q->an->graph->nodes[node].is_header) {
			/* Another loop on the way: only its invariant, and that it was entered. */
			q->now.condition = s->condition;
			q->inner_cut = true;
			fresh_state(q, q->an->in[node]);
		} else {
			q->now.condition = s->condition;
			memcpy(q->now.reg, s->reg, sizeof(s->reg));
			memcpy(q->now.flag, s->flag, sizeof(s->flag));
			q->now.slots = s->slots;
			memcpy(q->now.slot, s->slot, s->slots * sizeof(*s->slot));
		}
		reached |= run_node(q, node);
		q->failed |= Z3_get_error_code(q->z) != Z3_OK;
		q->failed |= q->an->deadline && fay_monotonic_ns() > q->an->deadline;
	}
	if (!reached)
		assume(q, Z3_mk_false(q->z)); /* no way leads there */
	return !q->failed;
}

/* ---- answers ---- */

static uint64_t model_number(struct query *q, Z3_model model, Z3_ast term)
{
	Z3_ast value = NULL;
	uint64_t number = 0;

	if (!term || !Z3_model_eval(q->z, model, term, true, &value) || !Z3_get_numeral_uint64(q->z, value, &number))
		return 0;
	return number;
}

static void read_model(struct query *q, struct fay_model *out)
{
	Z3_model model = Z3_solver_get_model(q->z, q->solver);

	if (!model)
		return;
	Z3_model_inc_ref(q->z, model);
	*out = (struct fay_model){ .from_entry = q->cut == 0 && !q->an->graph->nodes[0].is_header && !q->inner_cut };
	for (unsigned i = 0; i < 16; i++) {
		uint64_t word = model_number(q, model, q->event[i]);

		memcpy(out->event + 8 * i, &word, 8);
		out->registers[i] = model_number(q, model, q->start[i]);
	}
	for (unsigned i = 0; i < q->load_count; i++)
		out->loads[out->load_count++] = (struct fay_model_load){ .node = q->loads[i].node, .insn = q->loads[i].insn, .size = q->loads[i].size,
									 .value = model_number(q, model, q->loads[i].var) };
	Z3_model_dec_ref(q->z, model);
}

static enum fay_answer ask(struct query *q, struct fay_model *model)
{
	Z3_params params = Z3_mk_params(q->z);
	Z3_tactic tactic;
	Z3_lbool answer;
	uint64_t now = fay_monotonic_ns();
	unsigned ms = q->an->policy->solver_ms ? q->an->policy->solver_ms : 1000;

	if (q->an->deadline && now >= q->an->deadline)
		return ANSWER_UNKNOWN;
	if (q->an->deadline && (q->an->deadline - now) / 1000000 < ms)
		ms = (unsigned)((q->an->deadline - now) / 1000000) + 1;
	Z3_params_inc_ref(q->z, params);
	Z3_params_set_uint(q->z, params, Z3_mk_string_symbol(q->z, "timeout"), ms);
	Z3_params_set_uint(q->z, params, Z3_mk_string_symbol(q->z, "rlimit"), RLIMIT);
	/* A solver of tactics keeps what is asserted as it is; others simplify it at once, which no limit bounds. */
	tactic = Z3_mk_tactic(q->z, "qfbv");
	if (!tactic) {
		Z3_params_dec_ref(q->z, params);
		return ANSWER_UNKNOWN;
	}
	Z3_tactic_inc_ref(q->z, tactic);
	q->solver = Z3_mk_solver_from_tactic(q->z, tactic);
	Z3_solver_inc_ref(q->z, q->solver);
	Z3_tactic_dec_ref(q->z, tactic);
	Z3_solver_set_params(q->z, q->solver, params);
	for (unsigned i = 0; i < q->fact_count; i++)
		Z3_solver_assert(q->z, q->solver, q->facts[i]);
	answer = Z3_get_error_code(q->z) == Z3_OK ? Z3_solver_check(q->z, q->solver) : Z3_L_UNDEF;
	if (Z3_get_error_code(q->z) != Z3_OK)
		answer = Z3_L_UNDEF;
	if (answer == Z3_L_TRUE && model)
		read_model(q, model);
	Z3_solver_dec_ref(q->z, q->solver);
	Z3_params_dec_ref(q->z, params);
	return answer == Z3_L_FALSE ? ANSWER_PROVED : answer == Z3_L_TRUE ? ANSWER_REFUTED : ANSWER_UNKNOWN;
}

static const char *print_query(struct query *q, enum fay_answer answer)
{
	char name[96];
	const char *text;

	if (!q->fact_count)
		return NULL;
	snprintf(name, sizeof(name), "%s at .text+0x%llx", fay_rule_id(q->o->rule),
		 (unsigned long long)(q->an->cfg->insns[q->o->insn].address - q->an->image->text.start));
	text = Z3_benchmark_to_smtlib_string(q->z, name, "QF_BV",
					     answer == ANSWER_PROVED ? "unsat" : answer == ANSWER_REFUTED ? "sat" : "unknown", "",
					     q->fact_count - 1, q->facts, q->facts[q->fact_count - 1]);
	return text ? fay_arena_printf(q->an->arena, "%s", text) : NULL;
}

enum fay_answer fay_smt_ask(struct fay_analysis *an, const struct fay_obligation *o, struct fay_model *model, const char **smt2)
{
	struct query *q = calloc(1, sizeof(*q));
	Z3_config config = Z3_mk_config();
	enum fay_answer answer = ANSWER_UNKNOWN;
	bool checking = an->checking;

	if (smt2)
		*smt2 = NULL;
	if (!q || !config) {
		free(q);
		return ANSWER_UNKNOWN;
	}
	q->z = Z3_mk_context(config);
	Z3_del_config(config);
	Z3_set_error_handler(q->z, on_error);
	q->an = an;
	q->o = o;
	q->target = o->node;
	q->cut = cut_point(an, o->node);
	q->now.slot = q->now_slots;
	an->checking = false;
	for (unsigned i = 0; i < 16; i++) {
		char name[16];

		snprintf(name, sizeof(name), "event_%u", 8 * i);
		q->event[i] = Z3_mk_const(q->z, Z3_mk_string_symbol(q->z, name), Z3_mk_bv_sort(q->z, 64));
	}
	if (find_region(q) && build(q)) {
		answer = ask(q, model);
		if (smt2)
			*smt2 = print_query(q, answer);
	}
	an->checking = checking;
	for (uint32_t i = 0; q->entry && i < q->node_count; i++)
		free(q->entry[i].slot);
	free(q->entry);
	free(q->nodes);
	free(q->position);
	free(q->facts);
	Z3_del_context(q->z);
	free(q);
	return answer;
}
