/* SPDX-License-Identifier: MIT */
/*
 * Every form of instruction that the decoder admits (silicon_forms.c finds them) as part of the
 * programs of test_soundness, one after the other, so that each stands among others, on registers
 * and memory that programs may write. Left out: jumps, divisions and strings, which need
 * preparation and have items of their own, and what moves the stack pointer, but for a push that is
 * popped.
 */
#include "soundness_programs.h"

#include <stdlib.h>

#include "fay/event.h"
#include "tests/verifier/silicon/silicon.h"

#define FORMS_MOST 4096u
#define MEMORY_INDEX 3u /* r13 is at most that */

static struct form forms[FORMS_MOST];
static unsigned form_count, next_form;

/* What of an instruction its form is: operation, widths, kinds of operands, lock. */
#define KEY_BITS 20u
static bool universe[1u << KEY_BITS], executed[1u << KEY_BITS];

static unsigned kind_of(const struct fay_operand *o)
{
	return o->kind == OPERAND_HIGH ? OPERAND_REG : o->kind;
}

static uint32_t key_of(const struct fay_insn *insn)
{
	unsigned width = (unsigned)__builtin_ctz(insn->width | 64u) - 3,
		 from = (unsigned)__builtin_ctz(insn->src_width | 64u) - 3;

	_Static_assert(OP_COUNT <= 128, "an operation has seven bits");
	return (uint32_t)insn->op << 13 | width << 11 | from << 9 | kind_of(&insn->dst) << 6 |
	       kind_of(&insn->src) << 3 | kind_of(&insn->src2) << 1 | insn->locked;
}

static bool needs_preparation(uint8_t op)
{
	return op == OP_DIV || op == OP_IDIV || op == OP_REP_MOVS || op == OP_REP_STOS ||
	       op == OP_LEAVE || op == OP_POP;
}

static struct fay_arena *fresh_arena(struct fay_arena *old)
{
	if (old)
		fay_arena_destroy(old);
	old = fay_arena_create((size_t)8 << 20);
	if (!old)
		abort();
	return old;
}

static struct fay_arena *arena;

static void keep(const struct form *form)
{
	uint8_t bytes[15];
	struct fay_insn insn;

	arena = fresh_arena(arena);
	if (form_count < FORMS_MOST && silicon_instance(arena, form, bytes, &insn, 1000) &&
	    !needs_preparation(insn.op)) {
		forms[form_count++] = *form;
		universe[key_of(&insn)] = true;
	}
}

static bool free_register(const struct fay_operand *o)
{
	static const uint8_t usable[] = { FAY_RAX, FAY_RCX, FAY_RDX, FAY_RBP,
					  FAY_R8,  FAY_R9,  FAY_R10 };
	bool found = o->kind != OPERAND_REG && (o->kind != OPERAND_HIGH || o->reg != FAY_RBX);

	for (unsigned i = 0; i < sizeof(usable) && o->kind == OPERAND_REG; i++)
		found |= o->reg == usable[i];
	return found;
}

static const struct fay_operand *memory_of(const struct fay_insn *insn)
{
	return insn->dst.kind == OPERAND_MEM   ? &insn->dst
	       : insn->src.kind == OPERAND_MEM ? &insn->src
					       : NULL;
}

/* Bytes from r14 on that an access may reach. */
static unsigned reach(const struct fay_operand *mem)
{
	return (unsigned)mem->disp + (mem->index == FAY_NO_REG ? 0 : MEMORY_INDEX * mem->scale) + 8;
}

/* Whether programs may have it: no register but those that they compute with, memory within local
 * state. */
static bool suits(const struct fay_insn *insn, unsigned depth)
{
	const struct fay_operand *mem = memory_of(insn);

	if (!free_register(&insn->dst) || !free_register(&insn->src) || !free_register(&insn->src2))
		return false;
	if (!mem)
		return true;
	if ((insn->locked || fay_op_table[insn->op].attributes & ATTR_LOCKS) &&
	    ((mem->disp & 7) || (mem->index != FAY_NO_REG && mem->scale < 8)))
		return false;
	/* r13 is a loop's, too */
	return reach(mem) <= LOCAL_SIZE && (!depth || mem->index == FAY_NO_REG);
}

static void write_form(FILE *f, const struct fay_insn *insn, const uint8_t *bytes)
{
	const struct fay_operand *mem = memory_of(insn);
	const char *base = mem && reach(mem) <= 32 && program_pick(2)                     ? "rsp"
			   : mem && insn->dst.kind != OPERAND_MEM && program_pick(4) == 0 ? "rdi"
											  : "rsi";

	if (mem)
		fprintf(f, "\tmov %%%s, %%r14\n", base);
	if (mem && mem->index != FAY_NO_REG && program_pick(2))
		fprintf(f, "\tmov $%u, %%r13d\n", program_pick(MEMORY_INDEX + 1));
	else if (mem && mem->index != FAY_NO_REG)
		fprintf(f, "\tmov %u(%%rdi), %%r13\n\tand $%u, %%r13d\n", 8 * program_pick(6),
			MEMORY_INDEX);
	if (fay_op_table[insn->op].flags_read || fay_op_table[insn->op].attributes & ATTR_CC)
		fprintf(f, "\tcmp $%d, %%%s\n", (int)program_pick(40) - 20,
			program_pick(2) ? "rcx" : "r8d");
	fputs("\t.byte", f);
	for (unsigned i = 0; i < insn->length; i++)
		fprintf(f, "%s %u", i ? "," : "", bytes[i]);
	fputs("\n", f);
	if (insn->op == OP_PUSH)
		fputs("\tpop %rax\n", f);
	if (mem && mem->index != FAY_NO_REG)
		fputs("\txor %r13d, %r13d\n", f);
}

void program_form(FILE *f, unsigned depth)
{
	uint8_t bytes[15];
	struct fay_insn insn;
	const struct form *form;

	if (!form_count) {
		arena = fresh_arena(arena);
		silicon_each_form(&arena, keep);
	}
	arena = fresh_arena(arena);
	form = &forms[next_form++ % form_count];
	random_seed(program_random());
	for (unsigned tries = 0; tries < 400; tries++)
		if (silicon_instance(arena, form, bytes, &insn, 48) && suits(&insn, depth)) {
			write_form(f, &insn, bytes);
			return;
		}
}

void program_executed(const struct fay_insn *insn)
{
	executed[key_of(insn)] = true;
}

unsigned program_forms_executed(unsigned *of)
{
	unsigned count = 0;

	*of = 0;
	for (uint32_t key = 0; key < 1u << KEY_BITS; key++) {
		*of += universe[key];
		count += universe[key] && executed[key];
	}
	return count;
}
