/* SPDX-License-Identifier: MIT */
/*
 * fay-instructions: docs/internals/instructions.md from the verifier's tables (ops.def,
 * opcodes.def, opcodes_vector.def), on standard output.
 *
 * Not installed. A test compares the committed page with what this prints.
 */
#include <stdio.h>
#include <string.h>

#include "fay/verify.h"
#include "verifier/isa/isa.h"

struct op_text {
	const char *ident, *transfer, *semantics;
};

static const struct op_text op_texts[OP_COUNT] = {
#define OP(ident, name, dst, src, reads, writes, undefined, attributes, transfer, semantics, step, \
	   flow, implicit, meaning)                                                                \
	{ #ident, #transfer, #semantics },
#include "verifier/isa/ops.def"
#undef OP
};

struct encoding {
	const char *map;
	unsigned first, last;
	const char *ext;
	int op;                                /* -1: refused */
	const char *form, *width, *lock, *mod; /* refused: form is the rule, width the reason */
};

static const struct encoding encodings[] = {
#define ALLOW(map, first, last, ext, op, form, width, lock, mod)                                   \
	{ #map, first, last, #ext, OP_##op, #form, #width, #lock, #mod },
#define REFUSE(map, first, last, ext, rule, why)                                                   \
	{ #map, first, last, #ext, -1, #rule, why, "", "" },
#define VEX(map, pp, opcode, ext, op, form)                                                        \
	{ "VEX" #map #pp, opcode, opcode, #ext, OP_##op, #form, "Y", "NOLOCK", "EITHER" },
#include "verifier/isa/opcodes.def"
#include "verifier/isa/opcodes_refused.def"
#undef ALLOW
#undef REFUSE
#undef VEX
};

struct vector_text {
	const char *kind, *name, *map, *pp;
	unsigned opcode;
	const char *ext, *mod, *shape, *memory, *set, *wide, *w, *flags;
};

static const struct vector_text vectors[] = {
#define BOTH(name, map, pp, opcode, ext, mod, shape, flow, memory, set, wide, w, flags)            \
	{ "both", #name, #map, #pp, opcode, #ext, #mod, #shape, #memory, #set, #wide, #w, #flags },
#define SSE(name, map, pp, opcode, ext, mod, shape, flow, memory, set, wide, w, flags)             \
	{                                                                                          \
		"legacy", #name,   #map, #pp,   opcode, #ext,  #mod,                               \
		#shape,   #memory, #set, #wide, #w,     #flags                                     \
	},
#define AVX(name, map, pp, opcode, ext, mod, shape, flow, memory, set, wide, w, flags)             \
	{ "VEX", #name, #map, #pp, opcode, #ext, #mod, #shape, #memory, #set, #wide, #w, #flags },
#define NOVEC(map, pp, opcode, rule, why)                                                          \
	{ NULL, why, #map, #pp, opcode, "ANY", #rule, "", "", "", "", "", "" },
#include "verifier/isa/opcodes_vector.def"
#include "verifier/isa/opcodes_vector_refused.def"
#undef BOTH
#undef SSE
#undef AVX
#undef NOVEC
};

/* What the table's short names stand for. */
static const char *lookup(const char *const (*pairs)[2], const char *name)
{
	for (; (*pairs)[0]; pairs++)
		if (!strcmp((*pairs)[0], name))
			return (*pairs)[1];
	return name;
}

static const char *operands(const char *form)
{
	static const char *const names[][2] = {
		{ "NONE", "" },
		{ "RM_R", "r/m, r" },
		{ "R_RM", "r, r/m" },
		{ "R_RM_R", "r, r/m" },
		{ "R_RM8", "r, r/m8" },
		{ "R_RM16", "r, r/m16" },
		{ "R_RM32", "r, r/m32" },
		{ "RM_IZ", "r/m, imm" },
		{ "RM_IB", "r/m, imm8" },
		{ "RM_COUNT", "r/m, imm8" },
		{ "A_IZ", "rax, imm" },
		{ "RM", "r/m" },
		{ "RM_SRC", "r/m" },
		{ "RM_1", "r/m, 1" },
		{ "RM_CL", "r/m, cl" },
		{ "RM_R_IB", "r/m, r, imm8" },
		{ "RM_R_CL", "r/m, r, cl" },
		{ "R_RM_IZ", "r, r/m, imm" },
		{ "R_RM_IB", "r, r/m, imm8" },
		{ "O", "r (opcode)" },
		{ "O_SRC", "r (opcode)" },
		{ "O_IV", "r (opcode), imm" },
		{ "A_O", "rax, r (opcode)" },
		{ "IB", "imm8" },
		{ "IZ", "imm32" },
		{ "J8", "rel8" },
		{ "J32", "rel32" },
		{ "CALL32", "rel32; may have one prefix 67" },
		{ "EXTEND_A", "rax" },
		{ "SLOT", "[rip + slot] or r64" },
		{ "RM_JUMP", "r" },
		{ "FENCE", "" },
		{ "MOVS", "[rdi], [rsi]" },
		{ "STOS", "[rdi], rax" },
		{ "VEX_R_V_RM", "r, vvvv, r/m" },
		{ "VEX_V_RM", "vvvv, r/m" },
		{ "VEX_R_RM_IB", "r, r/m, imm8" },
		{ NULL, NULL },
	};

	return lookup(names, form);
}

static const char *widths(const char *width)
{
	static const char *const names[][2] = { { "B", "8" },     { "V", "16 32 64" },
						{ "Y", "32 64" }, { "Q", "64" },
						{ "W", "64" },    { "N", "" },
						{ NULL, NULL } };

	return lookup(names, width);
}

static const char *places(const char *mod)
{
	static const char *const names[][2] = { { "EITHER", "" },
						{ "REG", "register only" },
						{ "REGF", "register only" },
						{ "MEM", "memory only" },
						{ NULL, NULL } };

	return lookup(names, mod);
}

static const char *prefix(const char *map)
{
	static const char *const names[][2] = {
		{ "ONE", "" },
		{ "TWO", "0F " },
		{ "THREE", "0F 38 " },
		{ "F3ONE", "F3 " },
		{ "F3TWO", "F3 0F " },
		{ "VEX20", "VEX 0F38 " },
		{ "VEX21", "VEX 66 0F38 " },
		{ "VEX22", "VEX F3 0F38 " },
		{ "VEX23", "VEX F2 0F38 " },
		{ "VEX33", "VEX F2 0F3A " },
		{ NULL, NULL },
	};

	return lookup(names, map);
}

static void print_opcode(const struct encoding *e)
{
	printf("`%s%02X", prefix(e->map), e->first);
	if (e->last != e->first)
		printf("-%02X", e->last);
	if (strcmp(e->ext, "ANY") && strcmp(e->ext, "8"))
		printf(" /%s", e->ext);
	printf("`");
}

static void print_flags(uint8_t flags)
{
	static const char *const names[] = { "CF", "PF", "ZF", "SF", "OF" };
	const char *space = "";

	for (unsigned i = 0; i < 5; i++)
		if (flags >> i & 1) {
			printf("%s%s", space, names[i]);
			space = " ";
		}
}

static const char *access(bool read, bool written)
{
	return read && written ? "read, written" : read ? "read" : written ? "written" : "";
}

/* A bar would end the table's cell. */
static void print_cell(const char *text)
{
	for (; *text; text++)
		printf(*text == '|' ? "\\%c" : "%c", *text);
}

static void print_operation(unsigned op)
{
	const struct fay_op_info *info = &fay_op_table[op];

	printf("| %s | ", info->name);
	print_cell(info->meaning);
	printf(" | %s | %s | %s | ", access(info->dst_read, info->dst_written),
	       access(info->src_read, info->src_written), info->implicit);
	print_flags(info->flags_read);
	printf("%s | ", info->attributes & ATTR_CC ? "its condition's" : "");
	print_flags(info->flags_written & (uint8_t)~info->flags_undefined);
	printf(" | ");
	print_flags(info->flags_undefined);
	printf(" | %s | `%s` | `%s` |\n",
	       info->features ? fay_cpu_feature_name((unsigned)__builtin_ctz(info->features)) : "",
	       op_texts[op].transfer, op_texts[op].semantics);
}

static void print_operations(void)
{
	puts("## Operations\n\n"
	     "One row of `verifier/isa/ops.def` each. *dst* and *src* are registers, memory or "
	     "(src) "
	     "immediates, as the encoding says; memory is accessed once, at the\n"
	     "operand's width, in the way the column says; lea's src is not accessed. Writes of "
	     "32-bit registers zero the upper half, of 8 and 16 bits keep the rest. A flag that is "
	     "left\n"
	     "undefined may not be read (`ENV-FLAGS`); a flag in no column is kept. Shifts and "
	     "rotates by a masked count of 0 keep all flags, and by 1 define OF.\n"
	     "*transfer* is the function `fay_transfer_...` on abstract states, *semantics* the "
	     "function `fay_semantics_...` that the\n"
	     "interpreter and the solver share. *needs* names the CPU feature that the loader asks "
	     "for.\n\n"
	     "| operation | meaning | dst | src | implicit | flags read | defined | undefined | "
	     "needs | transfer | semantics |\n"
	     "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
	for (unsigned op = 0; op < OP_COUNT; op++)
		print_operation(op);
}

static void print_encodings(void)
{
	puts("\n## Encodings\n\n"
	     "Rows of `verifier/isa/opcodes.def`. Prefixes: 66 where 16 is among the widths, F0 "
	     "where "
	     "*lock* says so and the destination is memory, one REX directly\n"
	     "before the opcode whose every bit has an effect; no other. `/n` is a ModRM reg field "
	     "that selects the operation. No-operations of 1 to 15 bytes as GNU as and\n"
	     "LLVM emit them, `pause` and `endbr64` are matched whole (`decode.c`).\n\n"
	     "| opcode | operation | operands | widths | place | lock |\n| --- | --- | --- | --- | "
	     "--- | --- |");
	for (size_t i = 0; i < sizeof(encodings) / sizeof(*encodings); i++) {
		const struct encoding *e = &encodings[i];

		if (e->op < 0)
			continue;
		printf("| ");
		print_opcode(e);
		printf(" | %s | %s | %s | %s | %s |\n", fay_op_table[e->op].name, operands(e->form),
		       widths(e->width), places(e->mod), strcmp(e->lock, "LOCK") ? "" : "yes");
	}
}

/* INS_FORBIDDEN is INS-FORBIDDEN. */
static void print_rule(const char *rule)
{
	for (; *rule; rule++)
		putchar(*rule == '_' ? '-' : *rule);
}

static void print_refused(void)
{
	puts("\n## Refused on purpose\n\nWhat has no row at all is `DEC-ENCODING`.\n\n| opcode | "
	     "rule | what it is |\n| --- | --- | --- |");
	for (size_t i = 0; i < sizeof(encodings) / sizeof(*encodings); i++) {
		const struct encoding *e = &encodings[i];

		if (e->op >= 0)
			continue;
		printf("| ");
		print_opcode(e);
		printf(" | ");
		print_rule(e->form);
		printf(" | %s |\n", e->width);
	}
}

static void print_vector_opcode(const struct vector_text *v)
{
	static const char *const maps[][2] = {
		{ "M0F", "0F" }, { "M38", "0F38" }, { "M3A", "0F3A" }, { NULL, NULL }
	};
	static const char *const prefixes[][2] = {
		{ "PNP", "" }, { "P66", "66 " }, { "PF3", "F3 " }, { "PF2", "F2 " }, { NULL, NULL }
	};

	printf("`%s%s %02X", lookup(prefixes, v->pp), lookup(maps, v->map), v->opcode);
	if (strcmp(v->ext, "ANY"))
		printf(" /%s", v->ext);
	printf("`");
}

static void print_vectors(void)
{
	puts("\n## Vector instructions\n\n"
	     "Rows of `verifier/isa/opcodes_vector.def`, whose head explains shapes and the rest. "
	     "*forms*: legacy, VEX, or both, then named V... in its VEX form.\n"
	     "What they compute is not modelled: results are unknown numbers; which of their bytes "
	     "are initialised is tracked.\n\n"
	     "| opcode | instruction | forms | operands | place | memory bytes | 128 bits | 256 "
	     "bits |\n| --- | --- | --- | --- | --- | --- | --- | --- |");
	for (size_t i = 0; i < sizeof(vectors) / sizeof(*vectors); i++) {
		const struct vector_text *v = &vectors[i];

		if (!v->kind)
			continue;
		printf("| ");
		print_vector_opcode(v);
		printf(" | %s | %s | %s | %s | %s | %s | %s |\n", v->name, v->kind, v->shape,
		       places(v->mod), v->memory, v->set, strcmp(v->wide, "NONE") ? v->wide : "");
	}
	puts("\n### Vector instructions refused on purpose\n\n| opcode | rule | what it is |\n| "
	     "--- | --- | --- |");
	for (size_t i = 0; i < sizeof(vectors) / sizeof(*vectors); i++)
		if (!vectors[i].kind) {
			printf("| ");
			print_vector_opcode(&vectors[i]);
			printf(" | ");
			print_rule(vectors[i].mod);
			printf(" | %s |\n", vectors[i].name);
		}
}

int main(void)
{
	puts("# The instruction subset\n\n"
	     "Generated from the verifier's tables; the test `verifier_instructions_page` fails "
	     "where this page and the tables differ. To regenerate:\n\n"
	     "    build/bin/fay-instructions > docs/internals/instructions.md\n\n"
	     "How each form is compared with the CPU: [verifier.md](../verifier.md), \"How it is "
	     "tested\".\n");
	print_operations();
	print_encodings();
	print_refused();
	print_vectors();
	return 0;
}
