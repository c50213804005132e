/* SPDX-License-Identifier: MIT */
/* Writes docs/internals/vectors.md from the table: print_vectors > docs/internals/vectors.md. The
 * test compares. */
#include <stdio.h>
#include <string.h>

#include "verifier/isa/isa.h"

static const char *const maps[] = { "0F", "0F 38", "0F 3A" }, *const prefixes[] = { "", "66 ",
										    "F3 ", "F2 " };
static const char *const sets[] = { "",       "SSE",    "SSE2", "SSE3", "SSSE3",
				    "SSE4.1", "SSE4.2", "AVX",  "AVX2", "FMA" };

static void print_memory(const struct fay_vector_row *row)
{
	switch (row->memory) {
	case VMEMORY_VL: printf("vector"); break;
	case VMEMORY_HALF: printf("half"); break;
	case VMEMORY_QUARTER: printf("quarter"); break;
	case VMEMORY_EIGHTH: printf("eighth"); break;
	case 0: break;
	default: printf("%u", row->memory); break;
	}
}

static void print_row(const struct fay_vector_row *row)
{
	bool legacy = row->encodings & VENCODING_LEGACY, vex = row->encodings & VENCODING_VEX;

	char digit[4] = "";

	if (row->ext != 0xff)
		snprintf(digit, sizeof(digit), " /%u", row->ext & 7u);
	printf("| %s | %s%s %02X%s | %s | %s | %s | ", row->name, prefixes[row->pp], maps[row->map],
	       row->opcode, digit, legacy ? sets[row->set] : "",
	       !vex     ? ""
	       : legacy ? "AVX"
			: sets[row->set],
	       vex ? sets[row->wide] : "");
	print_memory(row);
	printf(" | %s%s%s%s |\n",
	       row->flags & VFLAG_ALIGN ? "aligned "
	       : row->memory == VMEMORY_VL && legacy && !(row->flags & VFLAG_LOOSE)
		       ? "aligned in SSE form "
		       : "",
	       row->flags & VFLAG_FP ? "MXCSR " : "", row->flags & VFLAG_FLAGS ? "flags " : "",
	       row->flags & VFLAG_ZERO   ? "x,x is 0"
	       : row->flags & VFLAG_ONES ? "x,x is ones"
					 : "");
}

int main(void)
{
	puts("# Vector instructions of the verified subset\n\n"
	     "Written by `build/bin/print_vectors` from verifier/isa/opcodes_vector.def; `ctest -R "
	     "verifier_vector_docs` compares. What the verifier knows of a vector\n"
	     "register is said in [decisions/0007-vectors.md](../decisions/0007-vectors.md). SSE, "
	     "AVX "
	     "128 and AVX 256: the instruction set that the legacy form, the VEX form of 128 and "
	     "that of 256\n"
	     "bits need; empty where there is none. Memory: bytes of a memory operand.\n\n"
	     "| instruction | opcode | SSE | AVX 128 | AVX 256 | memory | |\n| --- | --- | --- | "
	     "--- | --- | --- | --- |");
	for (unsigned i = 0; i < fay_vector_row_count; i++)
		print_row(&fay_vector_rows[i]);
	puts("\n## Refused on purpose\n\n| opcode | why |\n| --- | --- |");
#define NOVEC(map, pp, opcode, rule, why)                                                          \
	printf("| %s%s %02X | %s: %s |\n", prefixes[VPP_##pp], maps[VMAP_##map], opcode,           \
	       fay_rule_id(FAY_RULE_##rule), why);
#include "verifier/isa/opcodes_vector_refused.def"
	return 0;
}
