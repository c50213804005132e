/* SPDX-License-Identifier: MIT */
/*
 * The concrete interpreter: one normalised instruction on one machine state, as the Intel SDM (volume 2) says.
 *
 * It replays counterexamples, so it must be right where the analysis might be wrong, and is therefore written apart from the abstract and the symbolic
 * transfer functions. tests/verifier/test_exec.c compares it with the CPU, form by form. A fault changes nothing: operands are read
 * and places are checked before anything is written. Flags that the SDM leaves undefined are marked in flags_undefined and their value is not meant.
 *
 * Where the SDM leaves a result undefined (bsf/bsr of 0, shld/shrd beyond the width) the destination is kept; the analysis assumes nothing of it.
 * Alignment faults are off (AC is clear in all traced programs that matter) and rdtsc yields the values that the caller put into rdx and rax.
 */
#include <string.h>

#include "exec.h"

static uint64_t width_mask(unsigned width)
{
	return width == 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1;
}

static bool sign_of(uint64_t value, unsigned width)
{
	return value >> (width - 1) & 1;
}

static uint64_t sign_extend(uint64_t value, unsigned width)
{
	unsigned shift = 64 - width;
	return (uint64_t)((int64_t)(value << shift) >> shift);
}

/* The `size` bytes at `address`, NULL after noting the fault. */
static uint8_t *find(struct fay_machine *machine, uint64_t address, unsigned size, bool write)
{
	for (unsigned i = 0; i < machine->region_count; i++) {
		struct fay_exec_region *region = &machine->regions[i];
		uint64_t offset = address - region->base;

		if (offset < region->size && size <= region->size - offset && (!write || region->writable))
			return region->bytes + offset;
	}
	machine->fault_address = address;
	machine->fault_size = size;
	return NULL;
}

static uint64_t address_of(const struct fay_machine *machine, const struct fay_operand *o)
{
	uint64_t address = (uint64_t)o->disp;

	if (o->base != FAY_NO_REG)
		address += machine->gpr[o->base];
	if (o->index != FAY_NO_REG)
		address += machine->gpr[o->index] * o->scale;
	return address;
}

/* One instruction in flight: values in, values out, written back together at the end. */
struct step {
	struct fay_machine *machine;
	const struct fay_insn *insn;
	enum fay_exec_status status;
	uint8_t *place;  /* of a memory destination */
	uint64_t mask;
	uint64_t a, b;   /* dst and src as read, zero-extended from their widths */
	uint64_t result; /* for dst, if the operation writes it */
	bool write;      /* dst is written */
	uint8_t set, touched, undefined; /* flags: values, which are defined anew, which become undefined */
};

static uint64_t load(struct step *step, const struct fay_operand *o, unsigned width)
{
	uint64_t value = 0;
	uint8_t *bytes;

	switch (o->kind) {
	case OPERAND_REG:
		return step->machine->gpr[o->reg] & width_mask(width);
	case OPERAND_IMM:
		return (uint64_t)o->imm & width_mask(width);
	case OPERAND_MEM:
		bytes = find(step->machine, address_of(step->machine, o), width / 8, false);
		if (!bytes)
			step->status = EXEC_FAULT_READ;
		else
			memcpy(&value, bytes, width / 8);
		return value;
	default:
		return 0;
	}
}

static void set_gpr(struct fay_machine *machine, unsigned reg, unsigned width, uint64_t value)
{
	uint64_t mask = width_mask(width);

	if (width >= 32)
		machine->gpr[reg] = value & mask;
	else
		machine->gpr[reg] = (machine->gpr[reg] & ~mask) | (value & mask);
}

static void flag(struct step *step, uint8_t which, bool value)
{
	step->touched |= which;
	step->set = value ? step->set | which : step->set & ~which;
}

/* SF, ZF and PF follow the result; PF is the parity of its low byte. */
static void flags_of_result(struct step *step, uint64_t result)
{
	result &= step->mask;
	flag(step, FLAG_ZF, result == 0);
	flag(step, FLAG_SF, sign_of(result, step->insn->width));
	flag(step, FLAG_PF, __builtin_parityll(result & 0xff) == 0);
}

static uint64_t do_add(struct step *step, uint64_t a, uint64_t b, bool carry)
{
	unsigned width = step->insn->width;
	uint64_t result = (a + b + carry) & step->mask;

	flags_of_result(step, result);
	flag(step, FLAG_CF, carry ? result <= a : result < a);
	flag(step, FLAG_OF, sign_of((a ^ result) & (b ^ result), width));
	return result;
}

static uint64_t do_sub(struct step *step, uint64_t a, uint64_t b, bool borrow)
{
	unsigned width = step->insn->width;
	uint64_t result = (a - b - borrow) & step->mask;

	flags_of_result(step, result);
	flag(step, FLAG_CF, borrow ? a <= b : a < b);
	flag(step, FLAG_OF, sign_of((a ^ b) & (a ^ result), width));
	return result;
}

static uint64_t do_logic(struct step *step, uint64_t result)
{
	flags_of_result(step, result);
	flag(step, FLAG_CF, false);
	flag(step, FLAG_OF, false);
	return result;
}

static void undefine(struct step *step, uint8_t flags)
{
	step->undefined |= flags;
}

/* shl, shr, sar: the count is masked to 5 or 6 bits first, so 8- and 16-bit operands can be shifted beyond their width. */
static void do_shift(struct step *step)
{
	unsigned width = step->insn->width, count = step->b & (width == 64 ? 63 : 31);
	uint64_t a = step->a;
	bool carry;

	step->result = a;
	if (count == 0)
		return;
	switch (step->insn->op) {
	case OP_SHL:
		carry = count <= width && sign_of(a << (count - 1), width);
		step->result = (a << count) & step->mask; /* count < 64 */
		flag(step, FLAG_OF, sign_of(step->result, width) != carry);
		break;
	case OP_SHR:
		carry = count <= width && (a >> (count - 1) & 1);
		step->result = a >> count;
		flag(step, FLAG_OF, sign_of(a, width));
		break;
	default:
		carry = (int64_t)sign_extend(a, width) >> (count - 1) & 1;
		step->result = (uint64_t)((int64_t)sign_extend(a, width) >> count) & step->mask;
		flag(step, FLAG_OF, false);
	}
	flags_of_result(step, step->result);
	flag(step, FLAG_CF, carry);
	if (step->insn->op != OP_SAR && count >= width)
		undefine(step, FLAG_CF);
	if (count != 1)
		undefine(step, FLAG_OF);
}

/* rol, ror: no flag changes for a masked count of 0; CF is set even when the count is a multiple of the width. */
static void do_rotate(struct step *step)
{
	unsigned width = step->insn->width, masked = step->b & (width == 64 ? 63 : 31), count = masked % width;
	uint64_t a = step->a;

	step->result = a;
	if (masked == 0)
		return;
	if (step->insn->op == OP_ROL) {
		if (count)
			step->result = (a << count | a >> (width - count)) & step->mask;
		flag(step, FLAG_CF, step->result & 1);
		flag(step, FLAG_OF, sign_of(step->result, width) != (step->result & 1));
	} else {
		if (count)
			step->result = (a >> count | a << (width - count)) & step->mask;
		flag(step, FLAG_CF, sign_of(step->result, width));
		flag(step, FLAG_OF, sign_of(step->result ^ step->result << 1, width));
	}
	if (masked != 1)
		undefine(step, FLAG_OF);
}

/* shld, shrd: widths 32 and 64, so the masked count is always below the width. */
static void do_double_shift(struct step *step)
{
	unsigned width = step->insn->width, count = step->insn->imm & (width == 64 ? 63 : 31);
	uint64_t a = step->a;

	step->result = a;
	if (count == 0)
		return;
	if (step->insn->op == OP_SHLD) {
		step->result = (a << count | step->b >> (width - count)) & step->mask;
		flag(step, FLAG_CF, a >> (width - count) & 1);
	} else {
		step->result = (a >> count | step->b << (width - count)) & step->mask;
		flag(step, FLAG_CF, a >> (count - 1) & 1);
	}
	flags_of_result(step, step->result);
	flag(step, FLAG_OF, sign_of(step->result ^ a, width));
	if (count != 1)
		undefine(step, FLAG_OF);
}

static void multiply_flags(struct step *step, bool overflow)
{
	flag(step, FLAG_CF, overflow);
	flag(step, FLAG_OF, overflow);
	undefine(step, FLAG_SF | FLAG_ZF | FLAG_PF);
}

static void do_imul(struct step *step, uint64_t x, uint64_t y)
{
	unsigned width = step->insn->width;
	__int128 product = (__int128)(int64_t)sign_extend(x, width) * (int64_t)sign_extend(y, width);

	step->result = (uint64_t)product & step->mask;
	multiply_flags(step, product != (int64_t)sign_extend(step->result, width));
}

/* rdx:rax = rax * src. */
static void do_wide_multiply(struct step *step)
{
	struct fay_machine *m = step->machine;
	unsigned width = step->insn->width;
	uint64_t a = m->gpr[FAY_RAX] & step->mask, low, high;

	if (step->insn->op == OP_MUL1) {
		unsigned __int128 product = (unsigned __int128)a * step->b;
		low = (uint64_t)product & step->mask;
		high = (uint64_t)(product >> width) & step->mask;
		multiply_flags(step, high != 0);
	} else {
		__int128 product = (__int128)(int64_t)sign_extend(a, width) * (int64_t)sign_extend(step->b, width);
		low = (uint64_t)product & step->mask;
		high = (uint64_t)(product >> width) & step->mask;
		multiply_flags(step, product != (int64_t)sign_extend(low, width));
	}
	set_gpr(m, FAY_RAX, width, low);
	set_gpr(m, FAY_RDX, width, high);
}

static void do_divide(struct step *step)
{
	struct fay_machine *m = step->machine;
	unsigned width = step->insn->width;
	unsigned __int128 dividend =
		(unsigned __int128)(m->gpr[FAY_RDX] & step->mask) << width | (m->gpr[FAY_RAX] & step->mask);
	uint64_t quotient, remainder;

	if (step->b == 0) {
		step->status = EXEC_DIVIDE;
		return;
	}
	if (step->insn->op == OP_DIV) {
		unsigned __int128 q = dividend / step->b;
		if (q > step->mask) {
			step->status = EXEC_DIVIDE;
			return;
		}
		quotient = (uint64_t)q;
		remainder = (uint64_t)(dividend % step->b);
	} else {
		__int128 n = width == 64 ? (__int128)dividend : (__int128)(int64_t)dividend;
		__int128 d = (int64_t)sign_extend(step->b, width);
		/* The one quotient that does not fit the 128-bit type either. */
		bool overflow = d == -1 && n == (__int128)((unsigned __int128)1 << 127);
		__int128 q = overflow ? 0 : n / d;
		if (overflow || q != (int64_t)sign_extend((uint64_t)q & step->mask, width)) {
			step->status = EXEC_DIVIDE;
			return;
		}
		quotient = (uint64_t)q;
		remainder = (uint64_t)(n % d);
	}
	set_gpr(m, FAY_RAX, width, quotient);
	set_gpr(m, FAY_RDX, width, remainder);
	undefine(step, FLAG_ALL);
}

static void do_scan(struct step *step)
{
	unsigned width = step->insn->width;
	uint64_t b = step->b;

	if (step->insn->op == OP_BSF || step->insn->op == OP_BSR) {
		flag(step, FLAG_ZF, b == 0);
		undefine(step, FLAG_ALL & ~FLAG_ZF);
		step->write = b != 0;
		if (b)
			step->result = step->insn->op == OP_BSF ? (uint64_t)__builtin_ctzll(b) : 63 - (uint64_t)__builtin_clzll(b);
		return;
	}
	if (step->insn->op == OP_TZCNT)
		step->result = b ? (uint64_t)__builtin_ctzll(b) : width;
	else
		step->result = b ? (uint64_t)__builtin_clzll(b) - (64 - width) : width;
	flag(step, FLAG_CF, b == 0);
	flag(step, FLAG_ZF, step->result == 0);
	undefine(step, FLAG_OF | FLAG_SF | FLAG_PF);
}

/* Whether cc holds; EXEC_UNDEFINED_FLAGS if that depends on an undefined flag. */
static bool condition(struct step *step)
{
	uint8_t f = step->machine->flags;
	bool cf = f & FLAG_CF, zf = f & FLAG_ZF, sf = f & FLAG_SF, of = f & FLAG_OF, pf = f & FLAG_PF, holds = false;

	if (step->machine->flags_undefined & fay_cc_flags(step->insn->cc))
		step->status = EXEC_UNDEFINED_FLAGS;
	switch (step->insn->cc >> 1) {
	case 0: holds = of; break;
	case 1: holds = cf; break;
	case 2: holds = zf; break;
	case 3: holds = cf || zf; break;
	case 4: holds = sf; break;
	case 5: holds = pf; break;
	case 6: holds = sf != of; break;
	case 7: holds = zf || sf != of; break;
	}
	return holds != (step->insn->cc & 1);
}

static void do_exchange(struct step *step)
{
	struct fay_machine *m = step->machine;
	const struct fay_insn *insn = step->insn;

	switch (insn->op) {
	case OP_XCHG:
		set_gpr(m, insn->dst.reg, insn->width, step->b);
		set_gpr(m, insn->src.reg, insn->width, step->a);
		step->write = false;
		break;
	case OP_XADD:
		step->result = do_add(step, step->a, step->b, false);
		break;
	default: { /* CMPXCHG */
		uint64_t rax = m->gpr[FAY_RAX] & step->mask;

		do_sub(step, rax, step->a, false);
		step->result = rax == step->a ? step->b : step->a; /* memory is written either way */
		if (rax != step->a)
			set_gpr(m, FAY_RAX, insn->width, step->a);
	}
	}
}

static void push(struct step *step, uint64_t value)
{
	struct fay_machine *m = step->machine;
	uint8_t *place = find(m, m->gpr[FAY_RSP] - 8, 8, true);

	if (!place) {
		step->status = EXEC_FAULT_WRITE;
		return;
	}
	memcpy(place, &value, 8);
	m->gpr[FAY_RSP] -= 8;
}

static uint64_t pop(struct step *step)
{
	struct fay_machine *m = step->machine;
	uint8_t *place = find(m, m->gpr[FAY_RSP], 8, false);
	uint64_t value = 0;

	if (!place) {
		step->status = EXEC_FAULT_READ;
		return 0;
	}
	memcpy(&value, place, 8);
	m->gpr[FAY_RSP] += 8;
	return value;
}

/* Jumps, calls and returns: machine->rip holds the next instruction's address already. */
static void do_control(struct step *step)
{
	struct fay_machine *m = step->machine;
	const struct fay_insn *insn = step->insn;
	uint64_t target;

	switch (insn->op) {
	case OP_JMP:
		m->rip = insn->target;
		break;
	case OP_JCC:
		if (condition(step))
			m->rip = insn->target;
		break;
	case OP_JMP_TABLE:
		m->rip = step->a;
		break;
	case OP_CALL:
		push(step, insn->address + insn->length);
		m->rip = insn->target;
		break;
	case OP_CALL_SLOT:
		step->status = EXEC_CALL_SLOT;
		break;
	default:
		target = pop(step);
		m->rip = target;
	}
}

static void operate(struct step *step)
{
	const struct fay_insn *insn = step->insn;
	struct fay_machine *m = step->machine;
	bool carry = m->flags & FLAG_CF;

	switch ((enum fay_op)insn->op) {
	case OP_NOP: case OP_LFENCE: case OP_RDTSC: case OP_COUNT:
		break;
	case OP_MOV: case OP_MOVZX:
		step->result = step->b;
		break;
	case OP_MOVSX:
		step->result = sign_extend(step->b, insn->src_width);
		break;
	case OP_LEA:
		step->result = address_of(m, &insn->src);
		break;
	case OP_ADD:
		step->result = do_add(step, step->a, step->b, false);
		break;
	case OP_ADC: case OP_SBB:
		if (m->flags_undefined & FLAG_CF)
			step->status = EXEC_UNDEFINED_FLAGS;
		step->result = insn->op == OP_ADC ? do_add(step, step->a, step->b, carry) : do_sub(step, step->a, step->b, carry);
		break;
	case OP_SUB: case OP_CMP:
		step->result = do_sub(step, step->a, step->b, false);
		break;
	case OP_AND: case OP_TEST:
		step->result = do_logic(step, step->a & step->b);
		break;
	case OP_OR:
		step->result = do_logic(step, step->a | step->b);
		break;
	case OP_XOR:
		step->result = do_logic(step, step->a ^ step->b);
		break;
	case OP_NOT:
		step->result = ~step->a;
		break;
	case OP_NEG:
		step->result = do_sub(step, 0, step->a, false);
		break;
	case OP_INC: case OP_DEC:
		step->result = insn->op == OP_INC ? do_add(step, step->a, 1, false) : do_sub(step, step->a, 1, false);
		step->touched &= ~FLAG_CF;
		break;
	case OP_SHL: case OP_SHR: case OP_SAR:
		do_shift(step);
		break;
	case OP_ROL: case OP_ROR:
		do_rotate(step);
		break;
	case OP_SHLD: case OP_SHRD:
		do_double_shift(step);
		break;
	case OP_IMUL:
		do_imul(step, step->b, load(step, &insn->src2, insn->width));
		break;
	case OP_MUL1: case OP_IMUL1:
		do_wide_multiply(step);
		break;
	case OP_DIV: case OP_IDIV:
		do_divide(step);
		break;
	case OP_CQO:
		set_gpr(m, FAY_RDX, insn->width, sign_of(m->gpr[FAY_RAX], insn->width) ? UINT64_MAX : 0);
		break;
	case OP_BT:
		flag(step, FLAG_CF, step->a >> (step->b & (insn->width - 1)) & 1);
		undefine(step, FLAG_OF | FLAG_SF | FLAG_PF);
		break;
	case OP_BSWAP:
		step->result = insn->width == 64 ? __builtin_bswap64(step->a) : __builtin_bswap32((uint32_t)step->a);
		break;
	case OP_BSF: case OP_BSR: case OP_TZCNT: case OP_LZCNT:
		do_scan(step);
		break;
	case OP_POPCNT:
		do_logic(step, step->b);
		step->result = (uint64_t)__builtin_popcountll(step->b);
		flag(step, FLAG_SF, false);
		flag(step, FLAG_PF, false);
		break;
	case OP_XCHG: case OP_XADD: case OP_CMPXCHG:
		do_exchange(step);
		break;
	case OP_CMOV:
		step->result = condition(step) ? step->b : step->a;
		break;
	case OP_SETCC:
		step->result = condition(step);
		break;
	case OP_PUSH:
		push(step, step->b);
		break;
	case OP_POP:
		step->result = pop(step);
		break;
	case OP_JMP: case OP_JCC: case OP_JMP_TABLE: case OP_CALL: case OP_CALL_SLOT: case OP_RET:
		do_control(step);
		break;
	}
}

/* Reads the operands and finds the place of a memory destination. */
static void fetch(struct step *step)
{
	const struct fay_insn *insn = step->insn;
	const struct fay_op_info *info = &fay_op_table[insn->op];
	bool shift = insn->op >= OP_SHL && insn->op <= OP_ROR;

	if (info->src_read)
		step->b = load(step, &insn->src, shift ? 8 : insn->src_width);
	if (step->status == EXEC_OK && info->dst_read)
		step->a = load(step, &insn->dst, insn->width);
	if (step->status == EXEC_OK && info->dst_written && insn->dst.kind == OPERAND_MEM) {
		step->place = find(step->machine, address_of(step->machine, &insn->dst), insn->width / 8, true);
		if (!step->place)
			step->status = EXEC_FAULT_WRITE;
	}
	step->write = info->dst_written;
}

static void commit(struct step *step)
{
	struct fay_machine *m = step->machine;
	const struct fay_insn *insn = step->insn;

	/* xadd's register first: its old memory operand. (The register is never the memory's base after this: the place is found.) */
	if (insn->op == OP_XADD)
		set_gpr(m, insn->src.reg, insn->width, step->a);
	if (step->write && insn->dst.kind == OPERAND_REG)
		set_gpr(m, insn->dst.reg, insn->width, step->result);
	else if (step->write && step->place)
		memcpy(step->place, &step->result, insn->width / 8);
	m->flags = (uint8_t)((m->flags & ~step->touched) | (step->set & step->touched));
	m->flags_undefined = (uint8_t)((m->flags_undefined & ~step->touched) | step->undefined);
}

enum fay_exec_status fay_exec_step(struct fay_machine *machine, const struct fay_insn *insn)
{
	struct step step = { .machine = machine, .insn = insn, .status = EXEC_OK, .mask = width_mask(insn->width) };
	struct fay_machine before;

	fetch(&step);
	if (step.status != EXEC_OK)
		return step.status;
	before = *machine;
	machine->rip = insn->address + insn->length;
	operate(&step);
	if (step.status != EXEC_OK) { /* nothing happened, but for where it faulted */
		before.fault_address = machine->fault_address;
		before.fault_size = machine->fault_size;
		*machine = before;
		return step.status;
	}
	commit(&step);
	return EXEC_OK;
}
