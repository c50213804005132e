/* SPDX-License-Identifier: MIT */
/* Vector instructions of every form, on registers and memory; see near_code.h. */
#include "near_code.h"
#include "tests/verifier/decoding/vector_forms.h"

static struct vector_form vector_forms[2048];
static unsigned vector_form_count;

void near_init(void)
{
	for (unsigned at = 0;
	     vector_form_count < 2048 && vector_form_next(&at, &vector_forms[vector_form_count]);)
		vector_form_count++;
}

/* A vector instruction of any form; registers mostly such as were written before. */
static void vector_instruction(struct code *c, bool memory, unsigned base, int32_t disp)
{
	struct vector_form form;
	struct vector_operands o = { .reg = (unsigned)near_below(c, near_rarely(c, 20) ? 16 : 8),
				     .vvvv = (unsigned)near_below(c, near_rarely(c, 20) ? 16 : 8),
				     .rm = (unsigned)near_below(c, near_rarely(c, 20) ? 16 : 8),
				     .base = base,
				     .disp = (int8_t)disp,
				     .imm = (uint8_t)near_below(c, 256) };
	uint8_t bytes[16];
	unsigned size;

	do {
		form = vector_forms[near_below(c, vector_form_count)];
	} while (form.memory != memory);
	if (form.row->shape == VSHAPE_GG && !memory)
		o.rm = near_scratch(c);
	if (form.row->shape == VSHAPE_GG || form.row->shape == VSHAPE_GRM ||
	    form.row->shape == VSHAPE_GRMI)
		o.reg = near_scratch(c);
	if (!memory && (form.row->shape == VSHAPE_GX || form.row->shape == VSHAPE_GXI ||
			form.row->shape == VSHAPE_XG || form.row->shape == VSHAPE_XVGI ||
			form.row->shape == VSHAPE_XVG))
		o.rm = near_scratch(c);
	size = vector_form_encode(&form, &o, bytes);
	for (unsigned i = 0; i < size; i++)
		near_byte(c, bytes[i]);
}

/* Loads, arithmetic, stores of vectors; through state, the event, the stack and an index. */
void near_idiom_vector(struct code *c)
{
	unsigned count = 1 + (unsigned)near_below(c, 4), reg = near_scratch(c);

	if (reg == SP || reg == BP || reg == 12 || reg == 13)
		reg = 9;
	while (count--) {
		switch (near_below(c, 6)) {
		case 0:
			vector_instruction(c, true, SI,
					   16 * (int32_t)near_below(c, 8) -
						   (near_rarely(c, 12) ? 8 : 0));
			break;
		case 1:
			vector_instruction(c, true, near_rarely(c, 3) ? DX : DI,
					   8 * (int32_t)near_below(c, near_rarely(c, 8) ? 16 : 5));
			break;
		case 2: /* the frame: 48 bytes, from a multiple of 16 */
			near_op_rm(c, 64, 0x8d, reg, SP, SP, 0, c->frame);
			vector_instruction(c, true, reg,
					   16 * (int32_t)near_below(c, 2) +
						   (near_rarely(c, 6) ? 8 : 0));
			break;
		case 3: /* one of eight elements of 16 or 32 bytes */
			near_load_event(c, reg);
			near_op_ri(c, 32, 4, reg, near_rarely(c, 10) ? 15 : 7);
			near_op_rr(c, 32, 0xc1, 4, reg);
			near_byte(c, near_rarely(c, 12) ? 3 : 4);
			near_op_rr(c, 64, 0x01, SI, reg);
			vector_instruction(c, true, reg, 0);
			break;
		default: vector_instruction(c, false, 0, 0);
		}
	}
}
