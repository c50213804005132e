/* SPDX-License-Identifier: MIT */
/*
 * Every vector form of the table: that our decoder reads what was encoded, and that Zydis and
 * Capstone read the same.
 */
#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/xorshift.h"
#include "vector_forms.h"
#include "verifier/explain/explain.h"
#include "verifier/prover/decoders/agree.h"

static uint64_t random_state = 0x2545f4914f6cdd1d;
static unsigned below(unsigned limit)
{
	return (unsigned)(xorshift(&random_state) >> 33) % limit;
}

static unsigned disagreements;

static struct vector_operands random_operands(void)
{
	static const uint8_t bases[] = { FAY_RAX, FAY_RCX, FAY_RDX, FAY_RBX, FAY_RSI, FAY_RDI,
					 FAY_R8,  FAY_R9,  FAY_R11, FAY_R14, FAY_R15 };

	return (struct vector_operands){ .reg = below(16),
					 .vvvv = below(16),
					 .rm = below(16),
					 .base = bases[below(sizeof(bases))],
					 .disp = (int8_t)below(256),
					 .imm = (uint8_t)below(256) };
}

static void check_form(struct fay_agree *agree, const struct vector_form *form)
{
	struct fay_arena *arena = fay_arena_create(1 << 20);
	struct vector_operands operands = random_operands();
	uint8_t code[16] = { 0 };
	unsigned length = vector_form_encode(form, &operands, code);
	struct fay_insn insn;
	struct fay_refusal refusal = fay_decode(arena, code, length, 0x1000, &insn);
	char text[128] = "";

	if (refusal.rule == FAY_RULE_NONE)
		refusal = fay_agree_check(agree, arena, code, length, &insn);
	fay_disassemble(code, length, 0x1000, false, text, sizeof(text));
	if (refusal.rule != FAY_RULE_NONE) {
		disagreements++;
		print_message("%s %s%u %s: %s (Zydis: %s)\n", form->row->name,
			      form->vex ? "VEX." : "", form->length * 8,
			      form->memory ? "mem" : "reg", refusal.what, text);
		fay_arena_destroy(arena);
		return;
	}
	assert_int_equal(insn.length, length);
	assert_int_equal(insn.op, OP_VECTOR);
	assert_ptr_equal(fay_vector_row(&insn), form->row);
	assert_int_equal(insn.vex, form->vex);
	assert_int_equal(insn.vector, form->length);
	fay_arena_destroy(arena);
}

static void test_every_form(void **state)
{
	struct fay_agree *agree = fay_agree_create();
	struct vector_form form;
	unsigned at = 0, forms = 0;

	while (vector_form_next(&at, &form)) {
		for (unsigned i = 0; i < 20; i++)
			check_form(agree, &form);
		forms++;
	}
	print_message("%u vector forms\n", forms);
	assert_int_equal(disagreements, 0);
	assert_true(forms > 900);
	fay_agree_destroy(agree);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_form) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
