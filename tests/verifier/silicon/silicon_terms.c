/* SPDX-License-Identifier: MIT */
/*
 * The semantics as Z3's terms: built over unknowns, the concrete numbers put in for them,
 * simplified, and compared with what the interpreter computed.
 */
#include "silicon_check.h"

#include <stdlib.h>
#include <string.h>

#include "silicon.h"
#include "verifier/isa/isa.h"
#include "verifier/prover/smt/smt_terms.h"

#define SLOTS (SILICON_STACK / 4)
#define UNKNOWNS (16 + FLAGS + SLOTS)

static const uint8_t flag_of[FLAGS] = {
	[CF] = FLAG_CF, [ZF] = FLAG_ZF, [SF] = FLAG_SF, [OF] = FLAG_OF, [PF] = FLAG_PF
};

static void on_error(Z3_context z, Z3_error_code code)
{
	printf("Z3: %s\n", Z3_get_error_msg(z, code));
	exit(1);
}

static struct query *create(struct fay_analysis *an)
{
	struct query *q = calloc(1, sizeof(*q));
	Z3_config config = Z3_mk_config();

	if (!q)
		exit(2);
	q->z = Z3_mk_context(config);
	Z3_del_config(config);
	Z3_set_error_handler(q->z, on_error);
	q->an = an;
	q->exact = true;
	q->now.condition = Z3_mk_true(q->z);
	q->now.slot = q->now_slots;
	q->now.slots = SLOTS;
	return q;
}

static void destroy(struct query *q)
{
	Z3_del_context(q->z);
	free(q->facts);
	free(q);
}

/* Slot i lies 4 * (i + 1) bytes below rsp at entry. */
static uint32_t slot_number(const uint8_t *memory, unsigned i)
{
	uint32_t number;

	memcpy(&number, memory + SILICON_BELOW + SILICON_STACK - 4 * (i + 1), 4);
	return number;
}

/* Pointers are their offsets from rsp at entry. */
static uint64_t register_number(const struct fay_value *v, uint64_t number,
				const struct silicon_state *before)
{
	return v->kind == KIND_POINTER ? number - (before->base + SILICON_BELOW + SILICON_STACK)
				       : number;
}

static void fill(struct query *q, const struct silicon_state *before, Z3_ast *from, Z3_ast *to)
{
	unsigned n = 0;

	for (unsigned r = 0; r < 16; r++, n++) {
		from[n] = q->now.reg[r] = fresh_bits(q, 64);
		to[n] = bits(q, register_number(&q->an->current->loc[r], before->gpr[r], before),
			     64);
	}
	for (unsigned f = 0; f < FLAGS; f++, n++) {
		from[n] = q->now.flag[f] = fresh_bool(q);
		to[n] = before->flags & flag_of[f] ? Z3_mk_true(q->z) : Z3_mk_false(q->z);
	}
	for (unsigned i = 0; i < SLOTS; i++, n++) {
		from[n] = q->now.slot[i] = fresh_bits(q, 32);
		to[n] = bits(q, slot_number(before->memory, i), 32);
	}
}

/* True if the term is this number, or cannot be told: something in it is left open. */
static bool is_number(struct query *q, Z3_ast term, Z3_ast *from, Z3_ast *to, uint64_t number,
		      bool *open)
{
	uint64_t value;
	Z3_ast r = Z3_simplify(q->z, Z3_substitute(q->z, term, UNKNOWNS, from, to));

	*open = Z3_get_ast_kind(q->z, r) != Z3_NUMERAL_AST;
	return *open || (Z3_get_numeral_uint64(q->z, r, &value) && value == number);
}

static const char *compare(struct query *q, const struct fay_insn *insn,
			   const struct silicon_state *before, const struct fay_machine *after,
			   const uint8_t *memory, Z3_ast *from, Z3_ast *to)
{
	bool open,
		any_kept = (insn->op == OP_BSF || insn->op == OP_BSR) && (after->flags & FLAG_ZF);

	for (unsigned r = 0; r < 16; r++) {
		const struct fay_value *v = &q->an->current->loc[r];
		uint64_t number = register_number(v, after->gpr[r], before);

		if (r == FAY_RSP)
			continue; /* follows the abstract state */
		if (!is_number(q, q->now.reg[r], from, to, number, &open))
			return "a register differs as a term";
		if (open && !(any_kept && r == insn->dst.reg))
			return "a register is left open as a term";
	}
	for (unsigned f = 0; f < FLAGS; f++) {
		Z3_lbool b = Z3_get_bool_value(
			q->z,
			Z3_simplify(q->z, Z3_substitute(q->z, q->now.flag[f], UNKNOWNS, from, to)));

		if (after->flags_undefined & flag_of[f])
			continue;
		if (b == Z3_L_UNDEF)
			return "a flag is left open as a term";
		if ((b == Z3_L_TRUE) != !!(after->flags & flag_of[f]))
			return "a flag differs as a term";
	}
	for (unsigned i = 0; i < SLOTS && i < q->now.slots; i++) {
		if (!is_number(q, q->now.slot[i], from, to, slot_number(memory, i), &open))
			return "memory differs as a term";
		if (open && insn->op != OP_REP_MOVS && insn->op != OP_REP_STOS)
			return "memory is left open as a term";
	}
	return NULL;
}

/* A pointer as data: the terms say its offset, the CPU its address. */
static bool pointer_as_data(const struct fay_insn *insn, const struct fay_analysis *an)
{
	const struct fay_operand *operands[] = { &insn->dst, &insn->src, &insn->src2 };

	for (unsigned i = 0; i < 3; i++)
		if (operands[i]->kind == OPERAND_REG &&
		    an->current->loc[operands[i]->reg].kind == KIND_POINTER)
			return true;
	return false;
}

const char *silicon_check_terms(const struct fay_insn *insn, const struct silicon_state *before,
				const struct fay_machine *after, const uint8_t *memory)
{
	struct query *q;
	struct fay_analysis *an = silicon_analysis(insn, before, false);
	Z3_ast from[UNKNOWNS], to[UNKNOWNS];
	struct fay_value *r13 = &an->current->loc[FAY_R13];
	const char *wrong;

	/* Addresses of the stack are taken from the abstract state. */
	*r13 = fay_value_scalar(fay_scalar_const(before->gpr[FAY_R13]));
	if (pointer_as_data(insn, an))
		return NULL;
	q = create(an);
	an->checking = false;
	fill(q, before, from, to);
	fay_smt_step(q, insn);
	/* Pointers stay pointers: what they are offsets of is in the state after. */
	wrong = fay_transfer_step(an, 0, 0) ? compare(q, insn, before, after, memory, from, to)
					    : NULL;
	destroy(q);
	return wrong;
}

/* ---- operations on terms ---- */

static fay_word random_word(unsigned width)
{
	return fay_term_const((fay_word)random_value() << 64 | random_value(), width).value >>
	       (next_random() % 4 ? 0 : next_random() % (width + 1) % 128);
}

static bool term_agrees(struct query *q, enum fay_term_op op, const struct fay_term *args,
			unsigned count, unsigned width, unsigned low)
{
	struct fay_term want = fay_term_const(fay_term_evaluate(op, args, width, low), width),
			got = fay_smt_build_term(q, op, args, count, width, low);
	Z3_ast same = Z3_mk_eq(q->z, got.ast, fay_smt_lower(q, want));

	return Z3_get_bool_value(q->z, Z3_simplify(q->z, same)) == Z3_L_TRUE;
}

unsigned silicon_check_term_operations(unsigned cases)
{
	static const unsigned widths[] = { 1, 8, 16, 32, 64, 65, 128 };
	unsigned failures = 0;
	struct query *q = create(NULL);

	for (unsigned op = 0; op < TERM_OP_COUNT; op++) {
		for (unsigned k = 0; k < cases; k++) {
			unsigned w = widths[next_random() % 7], width = w, low = 0,
				 count = op <= TERM_NEG ? 1 : 2;
			struct fay_term args[3] = { fay_term_const(random_word(w), w),
						    fay_term_const(random_word(w), w) };

			if (next_random() % 4 == 0)
				args[1] = args[0];
			if (op >= TERM_EQ && op <= TERM_SLE)
				width = 0;
			if (op == TERM_ITE) {
				args[2] = args[1], args[1] = args[0],
				args[0] = fay_term_bool(next_random() & 1);
				count = 3;
			} else if (op == TERM_EXTRACT) {
				low = next_random() % w;
				width = 1 + next_random() % (w - low);
				count = 1;
			} else if (op == TERM_ZEXT || op == TERM_SEXT) {
				width = w + 1 + next_random() % 8;
				count = 1;
			} else if (op == TERM_CONCAT) {
				width = 2 * w;
			}
			if (width > 128)
				continue;
			if (!term_agrees(q, (enum fay_term_op)op, args, count, width, low)) {
				printf("term operation %u of width %u differs between term.c and "
				       "Z3\n",
				       op, w);
				failures++;
				break;
			}
		}
	}
	destroy(q);
	return failures;
}
